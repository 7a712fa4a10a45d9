# Columns go to texts and back without the program.

round_trip <- function(x) {
  told <- stirred:::encode_column(x, "x")
  path <- tempfile(fileext = ".csv")
  stirred:::write_texts(list(x = told), path)
  stirred:::restore_column(stirred:::read_texts(list(csv = path))$x, told)
}

test_that("what read.csv changes comes back as it was", {
  columns <- list(
    codes = c("01", "1", NA, "TRUE", "NA"),
    factors = factor(c("b", NA, "a"), levels = c("b", "a", "never")),
    ordered = factor(c("low", "high"), levels = c("low", "high"), ordered = TRUE),
    logicals = c(TRUE, NA, FALSE),
    integers = c(1L, NA, -.Machine$integer.max),
    doubles = c(1e5, NA, 1e15, 123456789),
    fractions = c(0.1, NA, -2.5),
    thirds = c(1 / 3, NA, pi * 1e10, 1e-20, 1e300, 2^53 + 2),
    nothing = c(NA, NA),
    unused = factor(c("a", "b"), levels = c("z", "b", "a")),
    none = factor(c(NA, NA)),
    na_level = addNA(factor(c("a", NA))),
    as_is = I(c("a", "b")),
    spaces = c(" a", "a ", " "),
    words = c("NA", "NULL", "null", "nan", "TRUE"),
    marked = c("'=x", "=y", "'z"),
    accents = c("e\u0301", "\u00e9", "\U0001f600"),
    dates = as.Date(c("2020-04-01", NA)),
    quotes = c("a,b", "say \"so\"", "two\nlines"),
    formulas = c("=1+1", "-x", "@y")
  )
  for (name in names(columns)) expect_identical(round_trip(columns[[name]]), columns[[name]], label = name)
  moments <- list(as.POSIXct("2020-04-01 12:00:00", tz = "UTC"), as.POSIXct(c("2020-04-01 12:00:00", NA), tz = "Europe/Vienna"))
  for (moment in moments) expect_identical(round_trip(moment), moment)
})

test_that("Latin-1 becomes UTF-8, and bytes without an encoding are refused", {
  text <- "Z\xfcrich"
  Encoding(text) <- "latin1"
  expect_identical(round_trip(text), "Z\u00fcrich")
  expect_error(stirred:::encode_column("Z\xfcrich\xff", "x"), class = "stirred_error")
})

test_that("labels are kept", {
  x <- structure(c(1L, 2L, NA), label = "Tenure")
  expect_identical(round_trip(x), x)
  # what a file of SPSS leaves on a column
  expect_identical(round_trip(structure(c(1, 2), label = "Zahl", format.spss = "F8.0")), structure(c(1, 2), label = "Zahl", format.spss = "F8.0"))
})

test_that("labelled columns keep codes, labels and class", {
  skip_if_not_installed("haven")
  x <- haven::labelled(c(1, 2, NA), c(own = 1, rent = 2), label = "Tenure")
  expect_identical(round_trip(x), x)
  whole <- haven::labelled(c(1L, 2L), c(own = 1L, rent = 2L))
  expect_identical(round_trip(whole), whole)
  told <- stirred:::encode_column(x, "x")
  expect_identical(told$labels, c("1" = "own", "2" = "rent"))
  expect_warning(stirred:::encode_column(haven::labelled(c(1, haven::tagged_na("a")), c(own = 1)), "x"), "tagged")
})

test_that("integer64 is no double", {
  skip_if_not_installed("bit64")
  x <- bit64::as.integer64(c("9007199254740993", NA, "-5"))
  expect_identical(round_trip(x), x)
})

test_that("what a file cannot carry is refused with what, why and fix", {
  moment <- as.POSIXct("2020-04-01 12:00:00.5", tz = "UTC")
  odd <- list(
    list(1, 2), I(list(1, 2)), matrix(1, 2, 2), data.frame(a = 1), 1i, as.raw(1), c(1, Inf), c(1, NaN), c("", "a"), factor(""), "a\rb",
    moment, as.POSIXlt(moment), as.difftime(1, units = "days"), structure(1, class = "money")
  )
  for (x in odd) {
    e <- expect_error(stirred:::encode_column(x, "rent"), class = "stirred_error")
    expect_match(e$what, "rent")
    expect_true(nzchar(e$why) && nzchar(e$fix))
  }
})

test_that("Parquet files give the same texts, whatever type their columns have", {
  frame <- data.frame(n = c(1e5, NA), i = c(1L, NA), f = factor(c("01", NA)), l = c(TRUE, NA), d = as.Date(c("2020-04-01", NA)), check.names = FALSE)
  texts <- stirred:::read_texts(list(parquet = "x.parquet"), read_parquet = function(path) frame)
  expect_identical(as.list(texts[1, ]), list(n = "100000", i = "1", f = "01", l = "TRUE", d = "2020-04-01"))
  expect_true(all(is.na(texts[2, ])))
  skip_if_not_installed("bit64")
  large <- data.frame(x = 1:2)
  large$x <- bit64::as.integer64(c("9007199254740993", NA))
  expect_identical(stirred:::read_texts(list(parquet = "x"), function(path) large)$x, c("9007199254740993", NA))
  expect_error(stirred:::read_texts(list(parquet = "x", csv = NA), NULL), "Parquet files alone", class = "stirred_error")
})

test_that("a data frame is taken as it is, or refused with a fix", {
  homes <- data.frame(region = c("A", "B"), tenure = c("own", "rent"), size = 1:2)
  census <- function(frame, ...) stirred_census(frame, "region", ...)
  twice <- homes
  names(twice)[3] <- "tenure"
  nameless <- homes
  names(nameless)[3] <- NA
  broken <- homes
  names(broken)[3] <- "a\nb"
  listed <- homes
  listed$size <- list(1, 2)
  for (odd in list(twice, nameless, broken, listed)) expect_error(census(odd), class = "stirred_error")
  expect_error(census(homes, levels = list(nope = 1)), "no column nope", class = "stirred_error")
  expect_error(census(homes, drop = "nope"), "no column nope", class = "stirred_error")
  expect_error(stirred_swap(homes, "tenure", "region", c(0.1, 0.2)), "one number", class = "stirred_error")
  expect_error(stirred_swap(homes, "tenure", "region", NA), "one number", class = "stirred_error")
  expect_identical(census(homes[0, ])$rows, c(household = 0L))
  rownames(homes) <- c("x", "y")
  expect_identical(census(homes)$names, names(homes))
  # levels as numbers: 1e5 is 100000
  told <- readLines(census(homes, levels = list(size = c(1, 2, 1e5)))$file)
  expect_match(told, "\"size\" = {levels = [1, 2, 100000]}", fixed = TRUE, all = FALSE)
  skip_if_not_installed("tibble")
  expect_identical(census(tibble::as_tibble(homes))$columns$household$tenure$text, c("own", "rent"))
})
