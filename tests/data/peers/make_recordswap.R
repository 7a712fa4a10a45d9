# Swap recordswap_people.csv with sdcMicro's own C++ code, for many seeds, and write what moved.
#
#   Rscript tests/data/peers/make_recordswap.R FOLDER_OF_SDCMICRO [SEEDS]
#
# FOLDER_OF_SDCMICRO holds the sources of sdcMicro (src/recordSwap_R.cpp and src/recordSwap). Debian's r-base-core and
# r-cran-rcpp compile them: no other package of R is needed. The call is the one that R/recordSwap.R makes: columns from 0,
# records sorted by household, a household's members together.
arguments <- commandArgs(trailingOnly = TRUE)
sources <- normalizePath(arguments[1])
seeds <- if (length(arguments) > 1) as.integer(arguments[2]) else 1000L
here <- dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE)))
version <- read.dcf(file.path(sources, "DESCRIPTION"), "Version")[1]
source(file.path(here, "build_recordswap.R"))
swap <- build_recordswap(sources)

people <- read.csv(file.path(here, "recordswap_people.csv"))
people <- people[order(people$hid), ]
records <- lapply(seq_len(nrow(people)), function(i) as.integer(people[i, ]))
at <- function(...) match(c(...), names(people)) - 1L
first <- !duplicated(people$hid)
places <- c("nuts1", "nuts2", "lau")

designs <- list(
  k3_rate0 = list(h = places, s = list(c("size", "kind"), "size"), k = 3L, rate = 0),
  k3_rate5 = list(h = places, s = list(c("size", "kind"), "size"), k = 3L, rate = 0.05),
  k3_rate30 = list(h = places, s = list(c("size", "kind"), "size"), k = 3L, rate = 0.3),
  k2_rate5 = list(h = places, s = list("size"), k = 2L, rate = 0.05),
  k5_rate0 = list(h = places, s = list(c("size", "kind")), k = 5L, rate = 0),
  k0_rate10 = list(h = places, s = list("size"), k = 0L, rate = 0.1),
  lau_k3_rate5 = list(h = "lau", s = list(c("size", "kind"), "size"), k = 3L, rate = 0.05)
)

found <- list()
for (name in names(designs)) {
  d <- designs[[name]]
  similar <- lapply(d$s, function(profile) as.list(at(profile)))
  for (seed in seq_len(seeds)) {
    log <- tempfile()
    made <- swap(records, at("hid"), at(d$h), similar, d$rate, list(), 0, d$k, at("age", "sex", "nation"),
                 integer(0), log, seed)
    made <- do.call(rbind, made)[first, ]
    colnames(made) <- names(people)
    before <- as.matrix(people[first, ])
    # the coarsest level whose code changed; codes of lower levels are unique in the file
    changed <- sapply(d$h, function(level) made[, level] != before[, level])
    crossed <- apply(changed, 1, function(row) if (any(row)) d$h[which(row)[1]] else "none")
    stayed <- if (file.exists(log)) length(readLines(log)) - 2L else 0L
    found[[length(found) + 1]] <- data.frame(
      design = name, seed = seed, moved = sum(crossed != "none"), across_nuts1 = sum(crossed == "nuts1"),
      across_nuts2 = sum(crossed == "nuts2"), across_lau = sum(crossed == "lau"), without_donor = stayed)
    unlink(log)
  }
}
found <- do.call(rbind, found)
statistics <- setdiff(names(found), c("design", "seed"))
summary <- do.call(rbind, lapply(names(designs), function(name) do.call(rbind, lapply(statistics, function(what) {
  x <- found[found$design == name, what]
  data.frame(design = name, statistic = what, households = sum(first), seeds = length(x), mean = mean(x),
             deviation = round(sd(x), 6), least = min(x), most = max(x))
}))))
write.csv(summary, file.path(here, "recordswap_moved.csv"), row.names = FALSE, quote = FALSE)
cat("sdcMicro", version, "with", R.version.string, "and Rcpp", format(packageVersion("Rcpp")), "\n")
print(summary[summary$statistic == "moved", ])
