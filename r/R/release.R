# Releases: one function a mechanism, all of which write a plan and run it.

stirred_swap <- function(data, match, swap, rate, key = NULL, ..., tables = list(), out = tempfile("packet"), title = "Swapped in R", progress = FALSE) {
  release_with("permutation-swapping", data, list(match = as.list(match), swap = as.list(swap), rate = write_exact(rate), ...),
               key, tables, out, title, progress)
}

stirred_stir <- function(data, match, swap, rate = NULL, loss = NULL, key = NULL, ..., tables = list(), out = tempfile("packet"), title = "Stirred in R", progress = FALSE) {
  settings <- list(match = as.list(match), swap = as.list(swap), rate = write_exact(rate), loss = write_exact(loss), ...)
  release_with("stirring", data, settings, key, tables, out, title, progress)
}

stirred_targeted <- function(data, hierarchy, similar, swaprate, risk_variables = NULL, k_anonymity = NULL, reason, key = NULL, ...,
                             tables = list(), out = tempfile("packet"), title = "Swapped in R", progress = FALSE) {
  similar <- lapply(if (is.list(similar)) similar else list(similar), as.list)
  settings <- list(hierarchy = as.list(hierarchy), similar = similar, swaprate = write_exact(swaprate),
                   risk_variables = if (!is.null(risk_variables)) as.list(risk_variables), k_anonymity = k_anonymity, without_guarantee = reason, ...)
  release_with("targeted-swapping", data, settings, key, tables, out, title, progress)
}

stirred_topdown <- function(data, workload, rho_squared = NULL, key = NULL, ..., tables = list(), out = tempfile("packet"), title = "TopDown from R", progress = FALSE) {
  if (file.exists(workload)) workload <- normalizePath(workload)
  release_with("topdown", data, list(workload = workload, rho_squared = write_exact(rho_squared), ...), key, tables, out, title, progress)
}

stirred_cellkey <- function(data, tables, reason, key = NULL, ..., out = tempfile("packet"), title = "Cell keys from R", progress = FALSE) {
  tables <- lapply(if (is.list(tables)) unname(tables) else list(tables), as.list)
  release_with("cell-key", data, list(tables = tables, without_guarantee = reason, ...), key, list(), out, title, progress)
}

# A budget or rate as exact text: 0.05 is the decimal number that was typed.
write_exact <- function(x) {
  if (is.null(x)) return(NULL)
  if (length(x) != 1L || is.na(x) || !is.numeric(x) && !is.character(x)) {
    stop_stirred("a rate, loss or budget is not one number", why = "it is one number, or one exact text", fix = "rate = 0.05, or rate = \"1/20\"")
  }
  write_number(x)
}

# A plain data frame is a census of one row each, whose places are those that the mechanism moves, coarsest first.
release_with <- function(mechanism, data, settings, key, tables, out, title, progress) {
  places <- unlist(if (is.null(settings$hierarchy)) settings$swap else settings$hierarchy)
  if (is.data.frame(data) && length(places)) data <- stirred_census(data, spine = places)
  if (!inherits(data, "stirred_census")) {
    stop_stirred("this is no census", why = "places, identifier and sizes are not known", fix = "stirred_swap(stirred_census(df, spine = , id = ), match = , ...)")
  }
  if (is.character(tables)) tables <- list(tables)
  if (length(tables) && is.null(names(tables))) names(tables) <- vapply(tables, paste, "", collapse = "-by-")
  plan <- write_plan(mechanism, data, settings, tables, title)
  made <- stirred_run(plan, out = out, key = key, census = data, progress = progress)
  asked <- intersect(names(tables), names(made$tables))
  made$tables <- made$tables[c(asked, setdiff(names(made$tables), asked))]
  made
}

write_plan <- function(mechanism, census, settings, tables, title) {
  settings <- settings[!vapply(settings, is.null, NA)]
  lines <- c(
    paste("title =", toml(title)), "census = \"census.toml\"", "[[mechanism]]", paste("name =", toml(mechanism)),
    sprintf("%s = %s", vapply(names(settings), toml, ""), vapply(settings, toml, "")),
    unlist(Map(function(name, by) {
      # a table by a column of persons counts persons
      person <- any(by %in% setdiff(names(census$columns$person), census$link))
      c("[[table]]", paste("name =", toml(name)), paste("by =", toml(as.list(by))), if (person) "record_type = \"person\"")
    }, names(tables), tables)),
    "[publish]", "formats = [\"parquet\", \"csv\"]"
  )
  path <- tempfile("plan-", tmpdir = census$folder, fileext = ".toml")
  write_lines(lines, path)
  path
}

stirred_run <- function(plan, out = tempfile("packet"), key = NULL, census = NULL, progress = FALSE) {
  words <- c("run", plan, "--out", out, if (!is.null(key)) c("--key", key))
  new_release(stirred_call(words, progress = progress), census, plan)
}

open_stirred <- function(packet) {
  public <- if (dir.exists(file.path(packet, "public"))) file.path(packet, "public") else packet
  receipt <- jsonlite::fromJSON(file.path(public, "receipt.json"), simplifyVector = FALSE)
  bound <- function(key) do.call(rbind, lapply(receipt$mechanisms, function(m) {
    if (length(m[[key]])) data.frame(mechanism = m$name, do.call(rbind, lapply(m[[key]], function(one) as.data.frame(one[names(one) != "rows"]))))
  }))
  listed <- function(folder) {
    paths <- list.files(folder, pattern = "[.]parquet$", full.names = TRUE)
    csv <- sub("[.]parquet$", ".csv", paths)
    data.frame(name = sub("[.]parquet$", "", basename(paths)), parquet = paths, csv = ifelse(file.exists(csv), csv, NA_character_))
  }
  data <- do.call(rbind, lapply(list.dirs(public, recursive = FALSE), function(folder) if (grepl("^data", basename(folder))) listed(folder)))
  names(data)[1] <- "record_type"
  new_release(list(
    packet = packet, report = file.path(public, "report.html"), private = receipt$private,
    specification = readLines(file.path(public, "card.md"), n = 1L, encoding = "UTF-8", warn = FALSE),
    files = list(spec.json = file.path(public, "spec.json"), datapackage.json = file.path(public, "datapackage.json")),
    data = data, tables = listed(file.path(public, "tables")), notes = unlist(lapply(receipt$mechanisms, `[[`, "notes")),
    guards = bound("guards"), checks = bound("invariants")
  ), NULL, NULL)
}

new_release <- function(answer, census, plan) {
  described <- jsonlite::fromJSON(answer$files$datapackage.json, simplifyVector = FALSE)$resources
  fields <- stats::setNames(lapply(described, function(one) stats::setNames(lapply(one$schema$fields, describe_field), vapply(one$schema$fields, `[[`, "", "name"))),
                            vapply(described, `[[`, "", "name"))
  restore <- function(row, folder, kept) {
    texts <- read_texts(row)
    told <- fields[[paste(folder, sub("[.](parquet|csv)$", "", basename(row$parquet)), sep = "/")]]
    # a spreadsheet would compute a name such as "=a" too
    names(texts) <- ifelse(names(texts) %in% names(told), names(texts), sub("^'", "", names(texts)))
    found <- lapply(names(texts), function(name) {
      # released identifiers are new numbers, whatever the old ones were
      own <- if (name %in% c(census$key, census$link)) NULL else kept[[name]]
      restore_column(texts[[name]], if (is.null(own)) told[[name]] else own)
    })
    structure(found, names = names(texts), class = "data.frame", row.names = .set_row_names(nrow(texts)))
  }
  rows <- function(frame) if (length(frame) && nrow(frame)) lapply(seq_len(nrow(frame)), function(i) as.list(frame[i, , drop = FALSE])) else list()
  data <- lapply(rows(answer$data), function(row) restore(row, basename(dirname(row$parquet)), census$columns[[row$record_type]]))
  names(data) <- make.unique(vapply(rows(answer$data), `[[`, "", "record_type"))
  own <- unlist(unname(lapply(census$columns, function(told) told)), recursive = FALSE)
  tables <- lapply(rows(answer$tables), function(row) restore(row, "tables", own))
  names(tables) <- vapply(rows(answer$tables), `[[`, "", "name")
  if (isTRUE(census$flat) && all(c("household", "person") %in% names(data))) {
    home <- data$household[match(data$person[[census$link]], data$household[[census$link]]), , drop = FALSE]
    whole <- cbind(data$person, home[setdiff(names(home), names(data$person))])
    data <- list(whole[intersect(census$names, names(whole))])
    rownames(data[[1]]) <- NULL
  }
  structure(
    c(list(data = if (length(data) == 1L) data[[1]] else data, tables = tables, spec = jsonlite::fromJSON(answer$files$spec.json, simplifyVector = FALSE)),
      answer[c("specification", "epsilon", "rho_squared", "guards", "checks", "notes", "private", "packet", "report")],
      list(plan = plan, census = census)),
    class = "stirred_release"
  )
}

as.data.frame.stirred_release <- function(x, row.names = NULL, optional = FALSE, record = NULL, ...) {
  if (is.data.frame(x$data)) return(x$data)
  if (is.null(record)) record <- names(x$data)[1]
  if (is.null(record) || is.null(x$data[[record]])) stop_stirred("this release has no such records", why = "it publishes tables alone, or records of other types", fix = "x$tables; names(x$data)")
  x$data[[record]]
}

print.stirred_release <- function(x, ...) {
  say("<stirred_release> ", x$specification)
  if (!isTRUE(x$private)) cat("  NOT PRIVATE: made with a key for tests\n")
  frames <- if (is.data.frame(x$data)) list(records = x$data) else x$data
  for (name in names(frames)) cat(sprintf("  $data: %d %s, %d columns\n", nrow(frames[[name]]), name, ncol(frames[[name]])))
  for (name in names(x$tables)) cat(sprintf("  $tables$%s: %d cells\n", name, nrow(x$tables[[name]])))
  cat("  report: ", x$report, "\n", sep = "")
  invisible(x)
}

# Lines no wider than those of R.
say <- function(..., indent = 0L) cat(strwrap(paste0(...), width = getOption("width"), indent = indent, exdent = indent + 2L), sep = "\n")

summary.stirred_release <- function(object, ...) {
  structure(list(specification = object$specification, checks = object$checks, guards = object$guards, notes = object$notes,
                 widths = lapply(object$tables, function(t) if (all(c("low", "high") %in% names(t))) summary(t$high - t$low))),
            class = "summary.stirred_release")
}

print.summary.stirred_release <- function(x, ...) {
  say(x$specification)
  if (length(x$checks)) for (i in seq_len(NROW(x$checks))) say(sprintf("kept: %s (%d numbers)", x$checks$invariant[i], x$checks$numbers[i]), indent = 2L)
  if (length(x$guards)) for (i in seq_len(NROW(x$guards))) say(sprintf("guard: %s: %s", x$guards$name[i], x$guards$finding[i]), indent = 2L)
  for (note in x$notes) say("note: ", note, indent = 2L)
  for (name in names(x$widths)) if (!is.null(x$widths[[name]])) {
    cat(sprintf("  %s: width of the 95 %% intervals: median %.1f, largest %.1f\n", name, x$widths[[name]]["Median"], x$widths[[name]]["Max."]))
  }
  invisible(x)
}

stirred_lookup <- function(release, ..., table = NULL) {
  where <- list(...)
  packet <- if (inherits(release, "stirred_release")) release$packet else release
  cells <- sprintf("%s=%s", names(where), vapply(where, as.character, ""))
  stirred_call(c("packet", "lookup", packet, if (!is.null(table)) c("--table", table), "--where", cells))
}

stirred_compare <- function(..., out = tempfile("compared", fileext = ".html")) {
  packets <- vapply(list(...), function(one) if (inherits(one, "stirred_release")) one$packet else one, "")
  stirred_call(c("packet", "compare", packets, "--out", out))$report
}
