# A data frame of R becomes a census, is swapped by Stirred, and comes back, without Python code.
# Rscript swap.R FOLDER [STIRRED [csv|parquet]]        needs the command stirred, and no R package
# Files are Parquet where the R package arrow is installed, else CSV, which base R writes and reads.
arguments <- commandArgs(trailingOnly = TRUE)
folder <- arguments[1]
stirred <- if (length(arguments) > 1) arguments[2] else "stirred"
arrow <- requireNamespace("arrow", quietly = TRUE)
ending <- if (length(arguments) > 2) arguments[3] else if (arrow) "parquet" else "csv"
dir.create(folder, recursive = TRUE, showWarnings = FALSE)

put <- function(frame, file) {
  # row.names = FALSE: row names would be a column without a name; NA becomes an empty field
  if (ending == "csv") write.csv(frame, file, row.names = FALSE, na = "", fileEncoding = "UTF-8") else arrow::write_parquet(frame, file)
}
take <- function(file) {
  if (ending == "csv") read.csv(file, encoding = "UTF-8", na.strings = "") else as.data.frame(arrow::read_parquet(file))
}

set.seed(1)
homes <- data.frame(
  hid = 100000 * (1:400), # doubles: write.csv writes 1e+05, which is read as 100000
  region = factor(rep(c("Genève", "Zürich"), each = 200)),
  district = rep(c("G1", "G2", "Z1", "Z2"), each = 100),
  hh.size = sample(1:4, 400, replace = TRUE),
  tenure = factor(sample(c("own", "rent", NA), 400, replace = TRUE)),
  garden = sample(c(TRUE, FALSE), 400, replace = TRUE)
)
put(homes, file.path(folder, paste0("household.", ending)))

writeLines(enc2utf8(c(
  'name = "from R"',
  "[geography]",
  'spine = ["region", "district"]',
  "[record.household]",
  sprintf('files = ["household.%s"]', ending),
  'id = "hid"',
  'size = "hh.size"',
  "[record.household.variables]",
  '"hh.size" = "1..9"',
  'tenure = {levels = ["own", "rent", "unknown"], missing = {policy = "level", empty_as = "unknown"}}',
  'garden = ["true", "false"]'
)), file.path(folder, "census.toml"), useBytes = TRUE)

writeLines(c(
  'title = "Homes by tenure"',
  'census = "census.toml"',
  "[[mechanism]]",
  'name = "permutation-swapping"',
  'match = ["region", "hh.size"]',
  'swap = ["district"]',
  'rate = "1/10"',
  "[[table]]",
  'name = "tenure-by-district"',
  'by = ["district", "tenure"]',
  "[publish]",
  'formats = ["parquet", "csv"]' # csv for base R
), file.path(folder, "plan.toml"))

packet <- file.path(folder, "packet")
# R sets LD_LIBRARY_PATH for itself; a Python of its own would load the system's libraries by it
status <- system2(stirred, c("run", shQuote(file.path(folder, "plan.toml")), "--out", shQuote(packet)), env = "LD_LIBRARY_PATH=")
stopifnot(status == 0)

swapped <- take(file.path(packet, "public", "data", paste0("household.", ending)))
stopifnot(nrow(swapped) == 400)
stopifnot(all(table(swapped$district, swapped$hh.size) == table(homes$district, homes$hh.size))) # an invariant
stopifnot(setequal(swapped$region, homes$region))
stopifnot(sum(swapped$tenure == "unknown") == sum(is.na(homes$tenure)))
tables <- take(file.path(packet, "public", "tables", paste0("tenure-by-district.", ending)))
stopifnot(all(c("estimate", "low", "high") %in% names(tables)))
print(tables)
