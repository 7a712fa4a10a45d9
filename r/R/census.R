# A data frame as a census: a CSV file of texts and a census.toml that says what they are.

stirred_census <- function(data, spine, id = NULL, size = NULL, household = NULL, persons = NULL, weight = NULL,
                           levels = list(), drop = character(), name = "census", folder = tempfile("stirred-census")) {
  frames <- list(household = as.data.frame(data))
  require_names(frames$household)
  flat <- !is.null(household) && is.null(persons)
  if (flat) frames <- split_households(frames$household, household, c(spine, size, weight), drop)
  if (!is.null(persons)) {
    frames$person <- as.data.frame(persons)
    require_names(frames$person)
    if (is.null(household) || is.null(id)) {
      stop_stirred("persons are not linked to their households", why = "household names the column of persons, id that of households", fix = "stirred_census(homes, spine, id = \"hid\", persons = people, household = \"hid\")")
    }
  }
  key <- if (flat) household else id
  every <- unique(unlist(lapply(frames, names)))
  require_columns(every, c(names(levels), drop))
  frames <- lapply(frames, function(frame) frame[setdiff(names(frame), drop)])
  require_columns(names(frames$household), c(spine, key, size, weight))
  if (!is.null(frames$person)) require_columns(names(frames$person), household)
  columns <- lapply(frames, function(frame) stats::setNames(Map(encode_column, frame, names(frame)), names(frame)))
  columns <- lapply(columns, function(told) {
    for (one in intersect(names(levels), names(told))) told[[one]]$levels <- enc2utf8(write_number(if (is.factor(levels[[one]])) levels(levels[[one]]) else levels[[one]]))
    told
  })
  made_key <- is.null(key)
  dir.create(folder, recursive = TRUE, showWarnings = FALSE, mode = "0700")
  for (kind in names(columns)) {
    path <- file.path(folder, paste0(kind, ".csv"))
    write_texts(columns[[kind]], path)
    Sys.chmod(path, "0600")
  }
  lines <- c(
    paste("name =", toml(name)), "[geography]", paste("spine =", toml(as.list(spine))), "type = \"text\"",
    "[record.household]", "files = [\"household.csv\"]",
    if (!made_key) paste("id =", toml(key)), if (!is.null(size)) paste("size =", toml(size)), if (!is.null(weight)) paste("weight =", toml(weight)),
    "[record.household.variables]", describe_variables(columns$household, c(spine, key, weight)),
    if (!is.null(columns$person)) c(
      "[record.person]", "files = [\"person.csv\"]", paste("household =", toml(household)),
      "[record.person.variables]", describe_variables(columns$person, household)
    )
  )
  file <- file.path(folder, "census.toml")
  write_lines(lines, file)
  structure(
    list(folder = folder, file = file, columns = columns, names = names(as.data.frame(data)), flat = flat, link = household, key = key,
         spine = spine, rows = vapply(frames, nrow, 0L)),
    class = "stirred_census"
  )
}

# The households of a file of persons: one row a value, with the columns that are constant within all of them.
split_households <- function(data, household, needed, drop) {
  require_columns(names(data), c(household, needed))
  first <- match(data[[household]], data[[household]])
  if (anyNA(data[[household]])) stop_stirred(sprintf("column %s has missing values", household), why = "it says which household a person lives in", fix = "leave these persons out, or number their households")
  constant <- names(data)[vapply(data, function(x) {
    x <- if (is.factor(x)) as.integer(x) else unclass(x)
    all((is.na(x) & is.na(x[first])) | (!is.na(x) & !is.na(x[first]) & x == x[first]))
  }, NA)]
  varying <- setdiff(needed, constant)
  if (length(varying)) {
    stop_stirred(sprintf("column %s differs within a household", varying[1]), why = "places and size belong to the whole household", fix = "correct the records, or name another column")
  }
  own <- !duplicated(data[[household]])
  list(household = data[own, setdiff(constant, drop), drop = FALSE], person = data[c(household, setdiff(names(data), constant))])
}

require_columns <- function(columns, names) {
  for (one in setdiff(names, columns)) {
    stop_stirred(paste("there is no column", one), why = "an argument names it", fix = paste("columns:", paste(columns, collapse = ", ")))
  }
}

require_names <- function(frame) {
  names <- enc2utf8(names(frame))
  if (anyDuplicated(names) || anyNA(names) || any(!nzchar(names))) {
    stop_stirred("two columns have one name, or one has none", why = "a column of a file is found by its name", fix = "names(data) <- make.unique(names(data))")
  }
  odd <- grepl("[\r\n]", names) | names != trimws(names)
  if (any(odd)) {
    stop_stirred(sprintf("the name of column %d has a line break, or blanks at its ends", which(odd)[1]), why = "a file does not keep them", fix = "names(data) <- trimws(gsub(\"[\\r\\n]+\", \" \", names(data)))")
  }
}

describe_variables <- function(columns, others) {
  columns <- columns[setdiff(names(columns), others)]
  vapply(names(columns), function(name) {
    told <- columns[[name]]
    levels <- told$levels
    whole <- told$kind == "integer"
    parts <- c(
      if (!is.null(levels)) paste("levels =", toml(as.list(if (whole) as.numeric(levels) else levels))) else paste("type =", toml(told$kind)),
      if (!is.null(told$label)) paste("label =", toml(as.character(told$label)[1])),
      if (length(told$labels)) paste("labels =", toml(as.list(told$labels))),
      if (told$missing) "missing = \"keep\""
    )
    sprintf("%s = {%s}", toml(name), paste(parts, collapse = ", "))
  }, "")
}

# A value of R in TOML: strings of TOML and JSON are the same.
toml <- function(x) {
  if (is.list(x) && !is.null(names(x))) return(sprintf("{%s}", paste(sprintf("%s = %s", vapply(names(x), toml, ""), vapply(x, toml, "")), collapse = ", ")))
  if (is.list(x) || length(x) > 1L) return(sprintf("[%s]", paste(vapply(x, toml, ""), collapse = ", ")))
  if (is.logical(x)) return(if (x) "true" else "false")
  if (is.numeric(x)) return(write_number(x))
  enc2utf8(as.character(jsonlite::toJSON(jsonlite::unbox(enc2utf8(as.character(x))))))
}

print.stirred_census <- function(x, ...) {
  cat(sprintf("<stirred_census> %s; %s\n", paste(sprintf("%d %s records", x$rows, names(x$rows)), collapse = ", "), paste(x$spine, collapse = " > ")))
  cat("  confidential files in ", x$folder, "\n", sep = "")
  invisible(x)
}

stirred_check <- function(x) {
  plan <- !inherits(x, "stirred_census")
  answer <- stirred_call(if (plan) c("plan", "check", x) else c("data", "check", x$file))
  if (plan) return(answer)
  none <- data.frame(record_type = character(), column = character(), rule = character(), count = integer(), of = character(), fix = character())
  problems <- if (length(answer$problems)) as.data.frame(answer$problems) else none
  if (nrow(problems)) warning(sprintf(ngettext(nrow(problems), "%d rule of the schema is broken", "%d rules of the schema are broken"), nrow(problems)), call. = FALSE)
  problems
}
