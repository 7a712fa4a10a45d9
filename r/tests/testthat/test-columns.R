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
    dates = as.Date(c("2020-04-01", NA)),
    quotes = c("a,b", "say \"so\"", "two\nlines"),
    formulas = c("=1+1", "-x", "@y")
  )
  for (name in names(columns)) expect_identical(round_trip(columns[[name]]), columns[[name]], label = name)
  moment <- as.POSIXct("2020-04-01 12:00:00", tz = "UTC")
  expect_equal(round_trip(moment), moment)
})

test_that("Latin-1 becomes UTF-8, and bytes without an encoding are refused", {
  text <- "Z\xfcrich"
  Encoding(text) <- "latin1"
  expect_identical(round_trip(text), "Z\u00fcrich")
  expect_error(stirred:::encode_column("Z\xfcrich\xff", "x"), class = "stirred_error")
})

test_that("labels are kept", {
  x <- structure(c(1L, 2L, NA), label = "Tenure")
  expect_identical(attr(round_trip(x), "label"), "Tenure")
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
  for (x in list(list(1, 2), 1i, as.raw(1), c(1, Inf), c(1, NaN), c("", "a"), as.difftime(1, units = "days"))) {
    e <- expect_error(stirred:::encode_column(x, "rent"), class = "stirred_error")
    expect_match(e$what, "rent")
    expect_true(nzchar(e$why) && nzchar(e$fix))
  }
})
