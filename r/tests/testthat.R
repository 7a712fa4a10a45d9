library(testthat)
library(stirred)
test_check("stirred")
