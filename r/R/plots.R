# Plots: intervals of a table, and loss against share.

plot.stirred_release <- function(x, what = c("intervals", "loss"), table = 1L, cells = 30L, ...) {
  if (match.arg(what) == "loss") return(invisible(plot(stirred_losses(x), ...)))
  if (!length(x$tables)) stop_stirred("this release has no table to plot", why = "no table was asked for", fix = "stirred_swap(..., tables = list(c(\"region\", \"tenure\")))")
  found <- x$tables[[table]]
  measures <- c("count", "weighted", "estimate", "standard_error", "variance", "low", "high", "quote")
  if (!all(c("low", "high") %in% names(found))) stop_stirred("this table has no intervals", why = "its mechanism states none", fix = "choose another table")
  whole <- nrow(found)
  # as many rows as can be read: a line of the smallest letters each, between the margins
  above <- 0.7
  below <- 0.9
  space <- graphics::par("fin")[2] - above - below
  found <- utils::head(found, max(1L, min(cells, floor(space / line_height(SMALLEST_LETTERS)))))
  letters <- min(0.75, max(SMALLEST_LETTERS, space / nrow(found) / line_height(1)))
  exact <- is.na(found$low)
  found$low[exact] <- found$high[exact] <- found$estimate[exact]
  # around the released count: beside counts of very different size the intervals themselves could not be seen
  from <- found$low - found$count
  to <- found$high - found$count
  by <- setdiff(names(found), measures)
  labels <- do.call(paste, c(lapply(found[by], as.character), sep = " \u00b7 "))
  labels <- paste0(labels, ": ", format(found$count, big.mark = ",", trim = TRUE))
  at <- rev(seq_along(labels))
  wide <- max(graphics::strwidth(labels, units = "inches", cex = letters)) + 0.3
  old <- graphics::par(mai = c(below, min(wide, graphics::par("fin")[1] / 2), above, 0.2))
  on.exit(graphics::par(old))
  name <- if (is.character(table)) table else names(x$tables)[table]
  graphics::plot(NA, xlim = range(0, from, to, finite = TRUE), ylim = c(0.5, length(at) + 0.5), yaxt = "n", ylab = "", bty = "n",
                 xlab = "true number, as far as it is known, minus released count", main = "", ...)
  graphics::title(if (nrow(found) < whole) sprintf("%s (%d of %d cells)", name, nrow(found), whole) else name, adj = 0, line = 1.4)
  # one by one: an axis leaves out labels that stand close
  for (i in seq_along(at)) graphics::axis(2, at[i], labels[i], las = 1, cex.axis = letters, tick = FALSE)
  graphics::abline(h = at, col = "grey93")
  graphics::abline(v = 0, col = "grey60", lty = 2)
  graphics::segments(from, at, to, at, col = "#2c6fbb", lwd = 2)
  graphics::points(found$estimate - found$count, at, pch = 19, cex = letters, col = "#2c6fbb")
  graphics::mtext("estimate with 95 % interval; left: the cell and its released count", side = 3, line = 0.2, cex = 0.8, adj = 0)
  invisible(found)
}

SMALLEST_LETTERS <- 0.5 # of the size of the device's text

# Inches from one line of text to the next.
line_height <- function(letters) 1.15 * letters * graphics::par("cin")[2]

stirred_losses <- function(x, shares = c(0.01, 0.02, 0.05, 0.1, 0.2, 0.4)) {
  census <- x$census
  if (!inherits(x, "stirred_release") || is.null(census)) stop_stirred("the census of this release is not at hand", why = "losses are stated for the strata of a census", fix = "use the release that stirred_swap() or stirred_stir() returned")
  plan <- readLines(x$plan, encoding = "UTF-8")
  if (!any(grepl("\"(permutation-swapping|stirring)\"", plan))) stop_stirred("this mechanism has no share", why = "losses against shares are stated for swaps and stirring", fix = "stirred_swap() or stirred_stir()")
  path <- tempfile("plan-", tmpdir = census$folder, fileext = ".toml")
  on.exit(unlink(path))
  # the settings of this mechanism, once for each share
  begin <- grep("^\\[\\[mechanism\\]\\]", plan)
  settings <- plan[seq(begin, length(plan))]
  settings <- settings[seq_len(c(grep("^\\[", settings[-1L]), length(settings))[1])]
  settings <- sub("^name = \"stirring\"", "name = \"permutation-swapping\"", settings[!grepl("^\"(rate|loss|law|shuffle_first)\" =", settings)])
  each <- lapply(shares, function(share) c(settings, paste("\"rate\" =", toml(write_exact(share)))))
  write_lines(c(plan[seq_len(begin - 1L)], unlist(each)), path)
  told <- stirred_call(c("plan", "check", path))$losses
  told <- told[told$epsilon != "\u221e", , drop = FALSE]
  structure(
    data.frame(share = shares[told$step], method = sub(",.*", "", told$mechanism), loss = as.numeric(told$epsilon)),
    class = c("stirred_losses", "data.frame")
  )
}

plot.stirred_losses <- function(x, ...) {
  methods <- unique(x$method)
  colours <- c("#2c6fbb", "#c1532b", "grey40")[seq_along(methods)]
  old <- graphics::par(mar = c(4.5, 3, 3, 1))
  on.exit(graphics::par(old))
  graphics::plot(x$share, x$loss, type = "n", log = "x", xlab = "swap rate: share of households that is selected", ylab = "", bty = "n", xaxt = "n", las = 1, ylim = c(0, max(x$loss)), ...)
  graphics::title("What an exchange of two households can lose", adj = 0, line = 1.6)
  graphics::mtext("epsilon, the smallest bound that is proved for these records", side = 3, line = 0.4, cex = 0.8, adj = 0)
  graphics::axis(1, unique(x$share), paste0(100 * unique(x$share), " %"))
  for (i in seq_along(methods)) {
    own <- x[x$method == methods[i], ]
    graphics::lines(own$share, own$loss, col = colours[i], lwd = 2, type = "b", pch = 19)
  }
  graphics::legend("topright", methods, col = colours, lwd = 2, pch = 19, bty = "n")
  invisible(x)
}
