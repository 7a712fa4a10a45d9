# Plots: intervals of a table, and loss against share.

plot.stirred_release <- function(x, what = c("intervals", "loss"), table = 1L, cells = 30L, ...) {
  if (match.arg(what) == "loss") return(invisible(plot(stirred_losses(x), ...)))
  if (!length(x$tables)) stop_stirred("this release has no table to plot", why = "no table was asked for", fix = "stirred_swap(..., tables = list(c(\"region\", \"tenure\")))")
  found <- x$tables[[table]]
  measures <- c("count", "weighted", "estimate", "standard_error", "variance", "low", "high", "quote")
  if (!all(c("low", "high") %in% names(found))) stop_stirred("this table has no intervals", why = "its mechanism states none", fix = "choose another table")
  whole <- nrow(found)
  found <- utils::head(found, cells)
  exact <- is.na(found$low)
  found$low[exact] <- found$high[exact] <- found$estimate[exact]
  # around the released count: beside counts of very different size the intervals themselves could not be seen
  from <- found$low - found$count
  to <- found$high - found$count
  by <- setdiff(names(found), measures)
  labels <- do.call(paste, c(lapply(found[by], as.character), sep = " \u00b7 "))
  labels <- paste0(labels, ": ", format(found$count, big.mark = ",", trim = TRUE))
  at <- rev(seq_along(labels))
  wide <- max(graphics::strwidth(labels, units = "inches", cex = 0.75)) + 0.3
  old <- graphics::par(mai = c(0.9, min(wide, 3.5), 0.7, 0.2))
  on.exit(graphics::par(old))
  name <- if (is.character(table)) table else names(x$tables)[table]
  graphics::plot(NA, xlim = range(0, from, to, finite = TRUE), ylim = c(0.5, length(at) + 0.5), yaxt = "n", ylab = "", bty = "n",
                 xlab = "true number, as far as it is known, minus released count", main = "", ...)
  graphics::title(if (nrow(found) < whole) sprintf("%s (%d of %d cells)", name, nrow(found), whole) else name, adj = 0, line = 1.4)
  graphics::axis(2, at, labels, las = 1, cex.axis = 0.75, tick = FALSE)
  graphics::abline(h = at, col = "grey93")
  graphics::abline(v = 0, col = "grey60", lty = 2)
  graphics::segments(from, at, to, at, col = "#2c6fbb", lwd = 2)
  graphics::points(found$estimate - found$count, at, pch = 19, cex = 0.8, col = "#2c6fbb")
  graphics::mtext("estimate with 95 % interval; left: the cell and its released count", side = 3, line = 0.2, cex = 0.8, adj = 0)
  invisible(found)
}

stirred_losses <- function(x, shares = c(0.01, 0.02, 0.05, 0.1, 0.2, 0.4)) {
  census <- x$census
  if (!inherits(x, "stirred_release") || is.null(census)) stop_stirred("the census of this release is not at hand", why = "losses are stated for the strata of a census", fix = "use the release that stirred_swap() or stirred_stir() returned")
  plan <- readLines(x$plan, encoding = "UTF-8")
  if (!any(grepl("\"(permutation-swapping|stirring)\"", plan))) stop_stirred("this mechanism has no share", why = "losses against shares are stated for swaps and stirring", fix = "stirred_swap() or stirred_stir()")
  path <- tempfile("plan-", tmpdir = census$folder, fileext = ".toml")
  on.exit(unlink(path))
  plan <- sub("^name = \"stirring\"", "name = \"permutation-swapping\"", plan[!grepl("^\"(loss|law|shuffle_first)\" =", plan)])
  plan <- plan[!grepl("^\"rate\" =", plan)]
  rows <- lapply(shares, function(share) {
    writeLines(append(plan, paste("rate =", toml(write_exact(share))), grep("^name = \"permutation-swapping\"", plan)), path, useBytes = TRUE)
    told <- paste(stirred_call(c("plan", "check", path))$compared_losses, collapse = " ")
    found <- regmatches(told, gregexpr("= ([0-9.]+) by ([a-z]+(-[a-z]+)*)", told))[[1]]
    data.frame(share = rep(share, length(found)), method = sub(".* by ", "", found), loss = as.numeric(sub("^= ([0-9.]+) .*", "\\1", found)))
  })
  structure(do.call(rbind, rows), class = c("stirred_losses", "data.frame"))
}

plot.stirred_losses <- function(x, ...) {
  methods <- unique(x$method)
  colours <- c("#2c6fbb", "#c1532b", "grey40")[seq_along(methods)]
  graphics::plot(x$share, x$loss, type = "n", log = "x", xlab = "swap rate: share of households that is selected", ylab = "loss at one exchange of two households (epsilon)", bty = "n", xaxt = "n", ylim = c(0, max(x$loss)), ...)
  graphics::axis(1, unique(x$share), paste0(100 * unique(x$share), " %"))
  for (i in seq_along(methods)) {
    own <- x[x$method == methods[i], ]
    graphics::lines(own$share, own$loss, col = colours[i], lwd = 2, type = "b", pch = 19)
  }
  graphics::legend("topright", methods, col = colours, lwd = 2, pch = 19, bty = "n")
  invisible(x)
}
