# Time recordSwap's C++ core on a file of persons, beside ours: benchmarks/traditional.py --recordswap FOLDER calls it.
#
#   Rscript benchmarks/recordswap.R FOLDER_OF_SDCMICRO PEOPLE.csv n3|n4 ROUNDS
#
# Prints seconds by the clock (median), seconds of the processor (mean) and the share of households that moved. Reading,
# sorting and R's own layer are left out, as they are of ours.
arguments <- commandArgs(trailingOnly = TRUE)
here <- dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE)))
source(file.path(here, "..", "tests", "data", "peers", "build_recordswap.R"))
swap <- build_recordswap(normalizePath(arguments[1]))
people <- read.csv(arguments[2], colClasses = "integer")
people <- people[order(people$hid), ]
hierarchy <- c("nuts1", "nuts2", "nuts3", "lau")[seq_len(if (arguments[3] == "n3") 3L else 4L)]
at <- function(...) match(c(...), names(people)) - 1L
first <- !duplicated(people$hid)
records <- unname(split(as.vector(t(as.matrix(people))), rep(seq_len(nrow(people)), each = ncol(people))))
similar <- list(as.list(at("hs", "ht")), as.list(at("hs")))
carried <- if (arguments[3] == "n3") at("lau") else integer(0)
times <- lapply(seq_len(as.integer(arguments[4])), function(seed) {
  log <- tempfile()
  on.exit(unlink(log))
  spent <- system.time(made <- swap(records, at("hid"), at(hierarchy), similar, 0.05, list(), 0, 3L, at("age", "sex", "nat"), carried, log, seed))
  place <- vapply(made[first], function(row) row[at(tail(hierarchy, 1)) + 1L], 0L)
  c(spent[["elapsed"]], spent[["user.self"]] + spent[["sys.self"]], mean(place != people[first, tail(hierarchy, 1)]))
})
times <- do.call(rbind, times)
cat(median(times[, 1]), mean(times[, 2]), mean(times[, 3]), "\n")
