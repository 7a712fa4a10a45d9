# The program stirred: where it is, how it is called, and its errors as conditions.

#' Path of the program: an option, a variable, what install_stirred() made, or the one on the path.
#' @noRd
find_command <- function() {
  kept <- kept_command_file()
  places <- c(
    getOption("stirred.command", ""), Sys.getenv("STIRRED_COMMAND"),
    if (file.exists(kept)) readLines(kept, n = 1L, warn = FALSE), Sys.which("stirred")
  )
  for (place in places) if (nzchar(place) && file.exists(place)) return(normalizePath(place))
  stop_stirred(
    "the program stirred was not found",
    why = "it is neither on the path nor named by options(stirred.command = ) or STIRRED_COMMAND",
    fix = "install_stirred(), or install_stirred(command = \"/path/to/stirred\")"
  )
}

kept_command_file <- function() file.path(tools::R_user_dir("stirred", "config"), "command")

install_stirred <- function(command = NULL, python = Sys.which("python3"), packages = "stirred",
                            folder = tools::R_user_dir("stirred", "data")) {
  if (is.null(command)) {
    if (!nzchar(python)) {
      stop_stirred("Python was not found", why = "stirred is a Python package", fix = "install_stirred(python = \"/path/to/python3\")")
    }
    dir.create(dirname(folder), recursive = TRUE, showWarnings = FALSE)
    run_or_stop(python, c("-m", "venv", shQuote(folder)))
    scripts <- file.path(folder, if (.Platform$OS.type == "windows") "Scripts" else "bin")
    run_or_stop(file.path(scripts, "python"), c("-m", "pip", "install", shQuote(packages)))
    command <- file.path(scripts, "stirred")
  }
  if (!file.exists(command)) {
    stop_stirred("there is no program at this place", why = "command names a file that does not exist", fix = "give the path of the program stirred")
  }
  command <- normalizePath(command)
  kept <- kept_command_file()
  dir.create(dirname(kept), recursive = TRUE, showWarnings = FALSE)
  writeLines(command, kept)
  options(stirred.command = command)
  invisible(command)
}

run_or_stop <- function(program, words) {
  if (with_own_libraries(system2(program, words)) != 0) {
    stop_stirred("the Python environment could not be made", why = paste(basename(program), "ended with an error, shown above"),
                 fix = "make it by hand, then install_stirred(command = )")
  }
}

# R sets LD_LIBRARY_PATH for itself; a Python of its own would load the system's libraries by it.
with_own_libraries <- function(code) {
  before <- Sys.getenv("LD_LIBRARY_PATH", NA)
  if (!is.na(before)) {
    Sys.unsetenv("LD_LIBRARY_PATH")
    on.exit(Sys.setenv(LD_LIBRARY_PATH = before))
  }
  force(code)
}

stirred_call <- function(words, progress = FALSE) {
  out <- tempfile("stirred-out")
  on.exit(unlink(out))
  words <- c(words, "--json", if (progress) c("--progress", "json"))
  line <- paste(c(shQuote(find_command()), vapply(enc2utf8(words), shQuote, ""), "2>&1", ">", shQuote(out)), collapse = " ")
  told <- list()
  status <- with_own_libraries({
    pipe <- pipe(line, open = "r", encoding = "UTF-8")
    tryCatch(while (length(text <- readLines(pipe, n = 1L, warn = FALSE))) {
      event <- tryCatch(jsonlite::fromJSON(text), error = function(e) list(event = "text", text = text))
      if (identical(event$event, "progress") && !identical(event$state, "done")) message(sprintf("%6.1f s  %s", event$seconds, event$step))
      else told[[length(told) + 1L]] <- event
    }, finally = code <- close(pipe))
    if (is.null(code)) 0L else as.integer(code)
  })
  for (event in told) if (identical(event$event, "error")) {
    stop_stirred(event$what, why = event$why, fix = event$fix, kind = event$kind, code = event$code)
  }
  answer <- if (file.exists(out) && file.size(out) > 0) jsonlite::fromJSON(out, simplifyVector = TRUE) else NULL
  if (is.null(answer)) {
    said <- paste(vapply(told, function(event) paste(unlist(event$text), collapse = " "), ""), collapse = "\n")
    stop_stirred("the program gave no answer", why = sprintf("it ended with code %s. %s", status, said), fix = "run the same command in a terminal")
  }
  for (event in told) if (identical(event$event, "message")) message(event$text)
  answer
}

# An error of the program, or of this package, as a condition with what, why, fix, kind and code.
stop_stirred <- function(what, why = "", fix = "", kind = "InputError", code = 2L) {
  text <- paste(c(what, if (nzchar(why)) paste("  why:", why), if (nzchar(fix)) paste("  fix:", fix)), collapse = "\n")
  stop(structure(
    list(message = text, call = NULL, what = what, why = why, fix = fix, kind = kind, code = code),
    class = c("stirred_error", "error", "condition")
  ))
}
