# A data frame of R becomes a census, is swapped by Stirred, and comes back: through Parquet, without Python code.
# Rscript swap.R FOLDER [STIRRED]        needs the R package arrow, and the command stirred
arguments <- commandArgs(trailingOnly = TRUE)
folder <- arguments[1]
stirred <- if (length(arguments) > 1) arguments[2] else "stirred"
library(arrow)

set.seed(1)
homes <- data.frame(
  hid = 1:400,
  region = rep(c("North", "South"), each = 200),
  district = rep(c("N1", "N2", "S1", "S2"), each = 100),
  size = sample(1:4, 400, replace = TRUE),
  tenure = factor(sample(c("own", "rent"), 400, replace = TRUE))
)
write_parquet(homes, file.path(folder, "household.parquet"))

writeLines(c(
  'name = "from R"', "[geography]", 'spine = ["region", "district"]', "[record.household]",
  'files = ["household.parquet"]', 'id = "hid"', 'size = "size"', "[record.household.variables]",
  'size = {type = "integer", range = "1..9"}', 'tenure = ["own", "rent"]'
), file.path(folder, "census.toml"))

packet <- file.path(folder, "packet")
status <- system2(stirred, c(
  "swap", shQuote(file.path(folder, "census.toml")), "--match", "region", "size", "--swap", "district",
  "--rate", "1/10", "--table", "district", "tenure", "--out", shQuote(packet)
))
stopifnot(status == 0)

swapped <- read_parquet(file.path(packet, "public", "data", "household.parquet"))
stopifnot(nrow(swapped) == 400)
stopifnot(all(table(swapped$district, swapped$size) == table(homes$district, homes$size))) # an invariant
print(read_parquet(file.path(packet, "public", "tables", "district-tenure.parquet")))
