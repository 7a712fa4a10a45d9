# Releases through the program; skipped where it is not installed.

skip_without_program <- function() {
  found <- tryCatch(stirred:::find_command(), stirred_error = function(e) NULL)
  skip_if(is.null(found), "the program stirred was not found: STIRRED_COMMAND=/path/to/stirred")
}

make_homes <- function() {
  set.seed(1)
  n <- 400
  homes <- data.frame(
    tenure = factor(sample(c("own", "rent", NA), n, TRUE), levels = c("rent", "own", "other")),
    hid = sprintf("h%03d", 1:n), code = sample(c("01", "02"), n, TRUE), hh.size = sample(1:4, n, TRUE),
    district = rep(c("01", "02", "11", "12"), each = 100), region = rep(c("Gen\u00e8ve", "Z\u00fcrich"), each = 200),
    garden = sample(c(TRUE, FALSE, NA), n, TRUE), rooms = sample(c(NA, 1:3), n, TRUE),
    stringsAsFactors = FALSE
  )
  attr(homes$rooms, "label") <- "Rooms"
  homes
}

# Two releases of one small file, made when a test first asks for them: each takes some seconds.
made_once <- new.env()
small_homes <- function() make_homes()[c("tenure", "district", "region", "garden")]
swap_once <- function() {
  if (is.null(made_once$swap)) made_once$swap <- suppressMessages(stirred_swap(small_homes(), c("region", "tenure"), "district", 0.1, tables = c("district", "tenure")))
  made_once$swap
}
stir_once <- function() {
  if (is.null(made_once$stir)) made_once$stir <- suppressMessages(stirred_stir(small_homes(), c("region", "tenure"), "district", rate = 0.1, tables = list(c("district", "tenure"))))
  made_once$stir
}

test_that("a data frame comes back with its columns, and the invariants hold", {
  skip_without_program()
  homes <- make_homes()
  census <- stirred_census(homes, spine = c("region", "district"), id = "hid", size = "hh.size")
  expect_identical(nrow(stirred_check(census)), 0L)
  broken <- homes
  broken$hid[2] <- broken$hid[1]
  broken <- stirred_census(broken, c("region", "district"), id = "hid", size = "hh.size")
  expect_warning(problems <- stirred_check(broken), "1 rule of the schema is broken")
  expect_identical(names(problems), names(stirred_check(census)))
  expect_identical(problems$column, "hid")
  made <- suppressMessages(stirred_swap(census, c("region", "hh.size"), "district", 0.1, tables = list(c("district", "tenure"))))
  expect_s3_class(made, "stirred_release")
  expect_identical(names(made$data), names(homes))
  for (name in setdiff(names(homes), "hid")) {
    expect_identical(class(made$data[[name]]), class(homes[[name]]))
    expect_identical(sort(made$data[[name]], na.last = TRUE), sort(homes[[name]], na.last = TRUE), ignore_attr = TRUE)
  }
  expect_identical(levels(made$data$tenure), levels(homes$tenure))
  expect_identical(attr(made$data$rooms, "label"), "Rooms")
  expect_identical(made$data$hid, 1:400)
  expect_identical(unclass(table(made$data$district, made$data$hh.size)), unclass(table(homes$district, homes$hh.size)))
  cells <- made$tables[["district-by-tenure"]]
  expect_true(all(c("count", "low", "high") %in% names(cells)))
  expect_identical(levels(cells$tenure), levels(homes$tenure))
  expect_true(all(made$checks$kept))
  expect_true(is.data.frame(made$guards))
  expect_identical(as.data.frame(made), made$data)
  expect_output(print(made), "stirred_release")
  expect_output(print(summary(made)), "kept:")
  grDevices::pdf(NULL)
  expect_identical(nrow(plot(made)), nrow(cells))
  grDevices::dev.off()
  found <- stirred_lookup(made, district = "01", tenure = "own")
  expect_identical(found$count, cells$count[cells$district == "01" & cells$tenure %in% "own"])
  again <- open_stirred(made$packet)
  expect_identical(levels(again$data$tenure), levels(homes$tenure))
  expect_identical(again$data$code, made$data$code)
  expect_identical(again$data$garden, made$data$garden)
})

test_that("columns of every kind come back through the program", {
  skip_without_program()
  homes <- make_homes()
  homes$hid <- NULL
  latin <- c("Gen\xe8ve", "Z\xfcrich")
  Encoding(latin) <- "latin1"
  pick <- function(values) rep(values, length.out = nrow(homes))
  odd <- list(
    unused = pick(factor(c("a", "b"), levels = c("z", "b", "a"))), ordered = pick(factor(c("lo", "hi"), levels = c("lo", "mid", "hi"), ordered = TRUE)),
    na_level = addNA(factor(pick(c("a", NA)))), none = factor(pick(NA)), logicals = pick(c(TRUE, FALSE, NA)), nothing = pick(NA),
    integers = pick(c(-1L, NA, .Machine$integer.max)), thirds = pick(c(1 / 3, NA, 1e-7, 2^53 + 2)), codes = pick(c("01", "1", "001", NA)),
    looks = pick(c("1e5", "1.0", "0x1F")), words = pick(c("NA", "NULL", "null", "nan")), "Gr\u00f6\u00dfe in m" = pick(c(" a", "a ", "a\tb")),
    "say \"a, b\"" = pick(c("say \"so\"", "a,b", "two\nlines")), "=cmd" = pick(c("=1+1", "'=x", "-x")), latin = pick(latin),
    accents = pick(c("e\u0301", "\u00e9", "\U0001f600")), dates = pick(as.Date(c("2020-04-01", NA))),
    times = pick(as.POSIXct(c("2020-04-01 12:00:00", NA), tz = "Europe/Vienna")), named = structure(pick(1:2), label = "Zahl", format.spss = "F8.0")
  )
  if (requireNamespace("bit64", quietly = TRUE)) odd$large <- bit64::as.integer64(pick(c("9007199254740993", NA, "-5")))
  if (requireNamespace("haven", quietly = TRUE)) {
    odd$labelled <- haven::labelled(pick(c(1, 2, NA)), c(own = 1, rent = 2), label = "Tenure")
    odd$letters <- haven::labelled(pick(c("a", "b")), c(Alpha = "a", Beta = "b"))
    odd$spss <- haven::labelled_spss(pick(c(1, 2, 9)), c(own = 1, rent = 2), na_values = 9)
  }
  homes[names(odd)] <- odd
  homes <- homes[c(names(odd), "region", "tenure", "district")]
  rownames(homes) <- paste0("r", seq_len(nrow(homes)))
  made <- suppressMessages(stirred_swap(homes, match = "region", swap = "district", rate = 0.2))
  expect_identical(names(made$data), names(homes))
  sort_names <- function(x) if (length(x)) x[order(names(x))]
  for (name in names(odd)) {
    expect_identical(sort_names(attributes(made$data[[name]])), sort_names(attributes(odd[[name]])), label = name)
    expect_identical(typeof(made$data[[name]]), typeof(odd[[name]]), label = name)
    counts <- function(x) c(table(enc2utf8(as.character(x)), useNA = "always"))
    expect_identical(counts(made$data[[name]]), counts(odd[[name]]), label = name)
  }
})

test_that("a file of persons is one data frame again", {
  skip_without_program()
  homes <- make_homes()
  people <- homes[rep(seq_len(nrow(homes)), homes$hh.size), ]
  set.seed(2)
  people$age <- sample(0:90, nrow(people), TRUE)
  people$sex <- factor(sample(c("f", "m"), nrow(people), TRUE))
  people <- people[c("age", names(homes), "sex")]
  census <- stirred_census(people, c("region", "district"), household = "hid", size = "hh.size")
  made <- suppressMessages(stirred_stir(census, c("region", "hh.size"), "district", rate = "1/10"))
  expect_identical(names(made$data), names(people))
  expect_identical(nrow(made$data), nrow(people))
  expect_identical(as.vector(table(table(made$data$hid))), as.vector(table(homes$hh.size)))
})

test_that("methods without a finite loss need a reason, and tables come back", {
  skip_without_program()
  homes <- make_homes()
  census <- stirred_census(homes, c("region", "district"), id = "hid", size = "hh.size")
  keyed <- suppressMessages(stirred_cellkey(census, list(c("district", "code")), reason = "a test"))
  expect_length(keyed$tables, 1L)
  swapped <- suppressMessages(stirred_targeted(census, c("region", "district"), "hh.size", "1/10", risk_variables = "code", k_anonymity = 2L, reason = "a test"))
  expect_identical(nrow(swapped$data), 400L)
})

test_that("errors of the program are conditions", {
  skip_without_program()
  census <- stirred_census(make_homes(), c("region", "district"), id = "hid", size = "hh.size")
  e <- expect_error(stirred_swap(census, "regio", "district", 0.1), class = "stirred_error")
  expect_match(e$what, "regio")
  expect_match(e$fix, "region")
  expect_identical(e$code, 2L)
  expect_error(stirred_call("no-such-verb"), class = "stirred_error")
  expect_error(stirred_swap(list(a = 1), "a", "a", 0.1), "no census", class = "stirred_error")
  expect_error(stirred_census(data.frame(a = 1), "b"), "no column b", class = "stirred_error")
})

test_that("a program that is not there is named", {
  old <- options(stirred.command = NULL)
  path <- Sys.getenv("PATH")
  named <- Sys.getenv("STIRRED_COMMAND")
  user <- Sys.getenv("R_USER_CONFIG_DIR")
  on.exit({ options(old); Sys.setenv(PATH = path, STIRRED_COMMAND = named, R_USER_CONFIG_DIR = user) })
  Sys.setenv(PATH = tempdir(), STIRRED_COMMAND = "", R_USER_CONFIG_DIR = tempfile())
  expect_error(stirred_call("demo"), "was not found", class = "stirred_error")
  expect_error(install_stirred(command = tempfile()), class = "stirred_error")
})

test_that("a plain data frame is a census of its own", {
  skip_without_program()
  homes <- small_homes()
  made <- swap_once()
  expect_identical(names(made$data), names(homes))
  # one table of two columns, named after them
  expect_identical(names(made$tables), "district-by-tenure")
  expect_identical(unclass(table(made$data$district, made$data$tenure)), unclass(table(homes$district, homes$tenure)))
  expect_s3_class(stir_once(), "stirred_release")
  expect_error(stirred_swap(homes[0, ], c("region", "tenure"), "district", 0.1), "no records", class = "stirred_error")
  expect_error(stirred_topdown(homes, "small"), "no census", class = "stirred_error")
  expect_error(stirred_swap("homes.csv", "tenure", "district", 0.1), "no census", class = "stirred_error")
})

test_that("a plan is checked, and two packets are compared", {
  skip_without_program()
  told <- stirred_check(swap_once()$plan)
  expect_match(paste(unlist(told), collapse = " "), "county|district")
  page <- stirred_compare(swap_once(), stir_once())
  expect_true(file.exists(page) && file.size(page) > 1000)
})

test_that("losses against shares are plotted", {
  skip_without_program()
  made <- stir_once()
  losses <- stirred_losses(made, shares = c(0.05, 0.2))
  expect_identical(losses$share, rep(c(0.05, 0.2), each = 2))
  expect_identical(losses$method, rep(c("permutation-swapping", "stirring"), 2))
  expect_true(all(is.finite(losses$loss)))
  # more that moves costs less
  own <- losses[losses$method == losses$method[1], ]
  expect_lt(own$loss[own$share == 0.2], own$loss[own$share == 0.05])
  grDevices::pdf(NULL)
  expect_no_error(plot(losses))
  grDevices::dev.off()
})

test_that("TopDown measures a workload of a file", {
  skip_without_program()
  homes <- make_homes()[c("tenure", "district", "region")]
  homes$tenure[is.na(homes$tenure)] <- "own"
  census <- stirred_census(homes, spine = c("region", "district"))
  workload <- tempfile(fileext = ".toml")
  writeLines(c(
    "name = \"homes\"",
    "title = \"Tenure by district\"",
    "record = \"household\"",
    "rho_squared = \"1\"",
    "levels = [\"region\", \"district\"]",
    "[[axis]]",
    "name = \"tenure\"",
    "labels = [\"rent\", \"own\", \"other\"]",
    "[axis.source]",
    "cases = [{ tenure = [\"rent\"] }, { tenure = [\"own\"] }, {}]",
    "[[query]]",
    "name = \"total\"",
    "[[query]]",
    "name = \"detailed\"",
    "of = [\"tenure\"]",
    "[level_shares]",
    "region = \"1/2\"",
    "district = \"1/2\"",
    "[query_shares.region]",
    "total = \"1/2\"",
    "detailed = \"1/2\"",
    "[query_shares.district]",
    "total = \"1/2\"",
    "detailed = \"1/2\""
  ), workload)
  made <- suppressMessages(stirred_topdown(census, workload, rho_squared = "1", tables = list(c("district", "tenure"))))
  expect_s3_class(made, "stirred_release")
  expect_true(nzchar(made$rho_squared))
  expect_identical(nrow(made$tables[[1]]) > 0L, TRUE)
})
