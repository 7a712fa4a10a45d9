# Columns of R as text, and back: what a file cannot carry is refused, what it loses is remembered.

# A column as text with what is needed to describe and to restore it: list(text, kind, levels, labels, label, restore).
encode_column <- function(x, name) {
  refuse <- function(what, why, fix) stop_stirred(sprintf("column %s %s", name, what), why = why, fix = fix)
  if (inherits(x, "POSIXlt")) refuse("is of class POSIXlt", "it is a list of days, months and years", "as.POSIXct()")
  if (is.list(x) || is.complex(x) || is.raw(x) || !is.null(dim(x))) {
    refuse(paste("is a", if (is.list(x)) "list" else class(x)[1]), "a column of a file holds one text, number, date or truth value a row", "leave it out, or make it a factor")
  }
  as_is <- inherits(x, "AsIs")
  if (as_is) class(x) <- setdiff(oldClass(x), "AsIs")
  told <- list(label = attr(x, "label", exact = TRUE), levels = NULL, labels = NULL)
  kept <- attributes(x)
  kept[c("names", "levels")] <- NULL
  if (is.factor(x)) {
    every <- levels(x)
    # a factor without levels is open; NA as a level (addNA) is a missing value on the way
    if (!all(is.na(every))) told$levels <- every[!is.na(every)]
    told$text <- as.character(x)
    told$kind <- if (is.null(told$levels)) "text" else "category"
    ordered <- is.ordered(x)
    told$restore <- function(text) factor(text, levels = c(every, setdiff(unique(stats::na.omit(text)), every)), ordered = ordered, exclude = NULL)
  } else if (inherits(x, "haven_labelled")) {
    plain <- unclass(x)
    labels <- attr(x, "labels", exact = TRUE)
    told$labels <- stats::setNames(names(labels), write_number(unname(labels)))
    attributes(plain) <- NULL
    inner <- encode_column(plain, name)
    if (is.double(plain) && any(is.na(x) & !is.nan(plain) & !is.na(tagged_na_of(x)))) {
      warning(sprintf("column %s: tagged missing values become plain ones", name), call. = FALSE)
    }
    told[c("text", "kind")] <- inner[c("text", "kind")]
    told$restore <- function(text) {
      found <- inner$restore(text)
      storage.mode(found) <- typeof(plain)
      attributes(found) <- kept
      found
    }
  } else if (inherits(x, "integer64")) {
    # without bit64 its bits would be read as doubles
    if (!requireNamespace("bit64", quietly = TRUE)) {
      refuse("is of class integer64", "without the package bit64 its numbers cannot be read", "install.packages(\"bit64\"), or make it character")
    }
    told$text <- bit64::as.character.integer64(x)
    told$kind <- "integer"
    told$restore <- function(text) bit64::as.integer64.character(text)
  } else if (inherits(x, "Date")) {
    told$text <- format(x, "%Y-%m-%d")
    told$kind <- "text"
    told$restore <- function(text) as.Date(text)
  } else if (inherits(x, "POSIXt")) {
    if (any(as.numeric(x) %% 1 != 0, na.rm = TRUE)) refuse("has parts of seconds", "times are written to the second", "as.POSIXct(trunc(x, \"secs\"))")
    told$text <- format(x, "%Y-%m-%dT%H:%M:%SZ", tz = "UTC")
    told$kind <- "text"
    zone <- attr(x, "tzone")
    told$restore <- function(text) with_zone(as.POSIXct(text, format = "%Y-%m-%dT%H:%M:%SZ", tz = "UTC"), zone)
  } else if (is.logical(x)) {
    told$text <- as.character(x)
    told$kind <- "category"
    told$levels <- c("FALSE", "TRUE")
    told$restore <- function(text) as.logical(text)
  } else if (is.numeric(x)) {
    if (!is.null(kept$class)) {
      refuse(paste("is of class", kept$class[1]), "it is not known what its numbers mean", "as.numeric(), as.character() or a factor")
    }
    if (any(is.nan(x) | is.infinite(x))) refuse("has values that are not numbers", "NaN and infinite values are neither levels nor missing", "make them NA")
    whole <- is.integer(x) || all(x == round(x), na.rm = TRUE) && all(abs(x) < 2^53, na.rm = TRUE)
    told$text <- write_number(x)
    told$kind <- if (whole) "integer" else "number"
    told$restore <- if (is.integer(x)) function(text) as.integer(text) else function(text) as.numeric(text)
  } else if (is.character(x)) {
    if (!all(validEnc(x) & validUTF8(enc2utf8(x)))) refuse("has bytes that are no text", "they are in no encoding that R was told", "iconv(x, \"latin1\", \"UTF-8\")")
    told$text <- enc2utf8(as.character(x))
    told$kind <- "text"
    told$restore <- function(text) text
  } else {
    refuse(paste("is of class", class(x)[1]), "it is not known how to write it to a file", "as.character(), or a factor")
  }
  # what else a column carries, such as its label and the format of the file that it came from
  others <- kept[setdiff(names(kept), c("class", "tzone"))]
  values_of <- told$restore
  told$restore <- function(text) {
    found <- values_of(text)
    attributes(found)[names(others)] <- others
    if (as_is) I(found) else found
  }
  told$text <- enc2utf8(told$text)
  if (!is.null(told$levels)) told$levels <- enc2utf8(told$levels)
  if (any(!is.na(told$text) & !nzchar(told$text))) {
    refuse("has empty texts", "in a file an empty field is a missing value", "make them NA, or a word such as \"none\"")
  }
  if (any(grepl("\r", told$text, fixed = TRUE))) refuse("has carriage returns", "a file of lines does not keep them", "gsub(\"\\r\", \"\", x)")
  told$missing <- anyNA(told$text)
  told
}

# The fewest digits that give the number back, 15 or 17, and no exponent; NA stays NA.
write_number <- function(x) {
  if (is.character(x)) return(x)
  if (is.integer(x)) return(as.character(x))
  text <- rep(NA_character_, length(x))
  here <- which(!is.na(x))
  short <- sprintf("%.15g", x[here])
  digits <- ifelse(as.numeric(short) == x[here], 15L, 17L)
  text[here] <- ifelse(digits == 15L, short, sprintf("%.17g", x[here]))
  long <- grepl("e", text[here], fixed = TRUE)
  text[here[long]] <- vapply(which(long), function(i) format(x[here[i]], digits = digits[i], scientific = FALSE, trim = TRUE), "")
  text
}

with_zone <- function(x, zone) {
  attr(x, "tzone") <- zone
  x
}

tagged_na_of <- function(x) if (requireNamespace("haven", quietly = TRUE)) haven::na_tag(unclass(x)) else rep(NA_character_, length(x))

# Texts of a released file as the column that they were.
restore_column <- function(text, told) {
  # CSV copies begin with an apostrophe what a spreadsheet would compute; a text that came with one keeps it
  marked <- !is.na(text) & grepl("^'[=+@\t\r-]", text)
  marked[marked] <- !text[marked] %in% c(told$levels, told$text)
  text[marked] <- substring(text[marked], 2L)
  found <- told$restore(text)
  if (!is.null(told$label) && is.null(attr(found, "label"))) attr(found, "label") <- told$label
  found
}

# What a packet says of a column (datapackage.json), for releases whose data frame is not at hand.
describe_field <- function(field) {
  levels <- vapply(field$categories, function(one) as.character(one$value), "")
  words <- unlist(lapply(field$categories, function(one) if (is.null(one$label)) NA_character_ else one$label))
  list(
    label = field$title,
    levels = if (length(levels)) levels,
    restore = if (length(levels) && !identical(field$type, "integer")) {
      function(text) if (setequal(levels, c("FALSE", "TRUE"))) as.logical(text) else factor(text, levels = levels)
    } else {
      switch(field$type,
        integer = function(text) {
          numbers <- as.numeric(text)
          found <- if (all(is.na(numbers) | abs(numbers) <= .Machine$integer.max)) as.integer(numbers) else numbers
          if (length(words) && !all(is.na(words))) attr(found, "labels") <- stats::setNames(as.numeric(levels), words)
          found
        },
        number = function(text) as.numeric(text),
        boolean = function(text) as.logical(text),
        date = function(text) as.Date(text),
        function(text) text
      )
    }
  )
}

# A released file as texts, one column each: "01" stays "01", and an empty field is NA.
read_texts <- function(paths, read_parquet = find_parquet_reader()) {
  if (!is.null(paths$parquet) && !is.null(read_parquet)) {
    frame <- as.data.frame(read_parquet(paths$parquet))
    frame[] <- lapply(frame, function(x) if (is.numeric(x) && !is.object(x)) write_number(x) else as.character(x))
    return(frame)
  }
  if (is.null(paths$csv) || is.na(paths$csv)) {
    stop_stirred("this packet has Parquet files alone", why = "base R reads CSV, and the package arrow is not installed",
                 fix = "install.packages(\"arrow\"), or formats = [\"parquet\", \"csv\"] under [publish] in the plan")
  }
  utils::read.csv(paths$csv, colClasses = "character", na.strings = "", check.names = FALSE, blank.lines.skip = FALSE, encoding = "UTF-8")
}

find_parquet_reader <- function() if (requireNamespace("arrow", quietly = TRUE)) arrow::read_parquet

write_texts <- function(columns, path) {
  quoted <- lapply(columns, function(told) {
    ifelse(is.na(told$text), "", paste0("\"", gsub("\"", "\"\"", told$text, fixed = TRUE), "\""))
  })
  heads <- paste0("\"", gsub("\"", "\"\"", enc2utf8(names(columns)), fixed = TRUE), "\"")
  write_lines(c(paste(heads, collapse = ","), do.call(paste, c(unname(quoted), sep = ","))), path)
}

write_lines <- function(lines, path) {
  file <- file(path, open = "wb")
  on.exit(close(file))
  writeLines(enc2utf8(lines), file, useBytes = TRUE)
}
