# A package of recordSwap's C++ core alone, from the sources of sdcMicro, in a temporary folder; returns the function.
#
# Debian's r-base-dev and r-cran-rcpp compile it: no other package of R is needed. Nothing of it is kept.
build_recordswap <- function(sources) {
  lacking <- !requireNamespace("Rcpp", quietly = TRUE)
  if (lacking) stop("the R package Rcpp is not installed\n  fix: sudo apt-get install r-cran-rcpp r-base-dev")
  if (!file.exists(file.path(sources, "src", "recordSwap_R.cpp"))) {
    stop("this folder has no src/recordSwap_R.cpp\n  fix: give the folder of sdcMicro's sources, such as a clone of sdcTools/sdcMicro")
  }
  package <- file.path(tempdir(), "peerswap")
  dir.create(file.path(package, "src"), recursive = TRUE)
  file.copy(file.path(sources, "src", "recordSwap_R.cpp"), file.path(package, "src"))
  file.copy(file.path(sources, "src", "recordSwap"), file.path(package, "src"), recursive = TRUE)
  writeLines(c("Package: peerswap", "Version: 1.0", "Title: x", "Author: x", "Maintainer: x <x@example.org>",
               "Description: x.", "License: GPL-2", "Imports: Rcpp", "LinkingTo: Rcpp"), file.path(package, "DESCRIPTION"))
  writeLines(c("useDynLib(peerswap, .registration = TRUE)", "importFrom(Rcpp, evalCpp)", "export(recordSwap_cpp)"),
             file.path(package, "NAMESPACE"))
  Rcpp::compileAttributes(package)
  library_folder <- file.path(tempdir(), "library")
  dir.create(library_folder)
  install.packages(package, lib = library_folder, repos = NULL, type = "source", quiet = TRUE)
  loadNamespace("peerswap", lib.loc = library_folder)$recordSwap_cpp
}
