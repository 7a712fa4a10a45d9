# Design perturbation tables of counts with ptable's own code, many of them with a start value of pstay, and write their laws.
#
#   Rscript tests/data/peers/make_ptable.R FOLDER_OF_PTABLE
#
# FOLDER_OF_PTABLE holds the sources of ptable (github.com/tenderle/ptable). Debian's r-base-core, r-cran-nloptr, r-cran-data.table
# and r-cran-rlang run the files that design a table; the dashboard and the plots of the package are not needed.
suppressMessages({library(data.table); library(nloptr); library(rlang); library(methods)})

sources <- normalizePath(commandArgs(trailingOnly = TRUE)[1])
here <- dirname(sub("--file=", "", grep("--file=", commandArgs(), value = TRUE)))
for (name in c("helpers", "pt_classes", "pt_optim_entropy", "pt_create_pParams", "pt_create_pTable")) {
  source(file.path(sources, "R", paste0(name, ".R")))
}

designs <- rbind(
  expand.grid(D = c(2, 3, 5), V = c(0.5, 1, 2, 3), js = c(0, 1, 2), pstay = c(NA, 0.1, 0.3, 0.5, 0.7), mono = TRUE),
  expand.grid(D = 4, V = c(1, 2), js = 0, pstay = c(NA, 0.4), mono = FALSE)
)
found <- list()
refused <- 0
for (row in seq_len(nrow(designs))) {
  d <- designs[row, ]
  stay <- if (is.na(d$pstay)) NULL else d$pstay
  made <- tryCatch(
    suppressMessages(pt_create_pTable(pt_create_pParams(D = d$D, V = d$V, js = d$js, pstay = stay, mono = d$mono, step = 1))),
    error = function(e) NULL)
  if (is.null(made)) { refused <- refused + 1; next }
  t <- as.data.frame(made@pTable)
  t <- t[t$i > 0, ]
  found[[length(found) + 1]] <- data.frame(
    D = d$D, V = d$V, js = d$js, pstay = if (is.na(d$pstay)) "" else d$pstay, mono = tolower(d$mono),
    i = t$i, v = t$v, p = sprintf("%.8f", t$p))
}
cat(length(found), "tables,", refused, "refused by ptable", read.dcf(file.path(sources, "DESCRIPTION"), "Version")[1],
    "with", R.version.string, "and nloptr", format(packageVersion("nloptr")), "\n")
write.csv(do.call(rbind, found), file.path(here, "ptable_laws.csv"), row.names = FALSE, quote = FALSE)
