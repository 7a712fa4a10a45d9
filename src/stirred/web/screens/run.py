"""Run: what the plan promises on the records, then the run itself with its progress, cancelled and taken up."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from stirred.errors import InputError
from stirred.web import commands
from stirred.web.forms import last_text
from stirred.web.jobs import steps_of_job
from stirred.web.pages import bench_of, form_of, fragment, number_of, page
from stirred.web.screens.plan import checked_plan
from stirred.web.workbench import Workbench

JOB_NAMES = {
    "run": "Run",
    "check-plan": "Check of the plan",
    "check-data": "Check of the records",
    "synth": "Demo census",
    "describe": "Codebook",
    "assess": "Assessment",
    "compare": "Comparison",
    "frontier": "Frontier",
}


def run_routes() -> list[Route]:
    """Return the addresses of this screen."""
    return [
        Route("/run", run),
        Route("/run/check", check_plan, methods=["POST"]),
        Route("/run/start", start_run, methods=["POST"]),
        Route("/run/jobs", jobs),
        Route("/run/{number}/cancel", cancel, methods=["POST"]),
        Route("/run/{number}/resume", resume, methods=["POST"]),
    ]


def run(request: Request) -> Response:
    """Show the current plan, what its check found, and all jobs."""
    bench = bench_of(request)
    bench.document()
    current = bench.history.current
    checked, looked = checked_plan(bench)
    number = bench.next_number()
    plan = f"plans/{current:04}.toml"
    return page(
        request,
        "run.html.j2",
        title="Run",
        step="run",
        shown=[commands.check_plan(plan), commands.run(plan, f"packets/{number:04}")],
        current=current,
        plan=bench.plan(),
        checked=checked,
        found=looked,
        read=bench.require_data().read,
        jobs=_list_jobs(bench),
    )


def jobs(request: Request) -> Response:
    """Show the list of jobs as it is now."""
    return fragment(request, "jobs.html.j2", jobs=_list_jobs(bench_of(request)))


def check_plan(request: Request) -> Response:
    """Let the promise be stated on the records and let the guards look, with a trial draw."""
    bench = bench_of(request)
    if not bench.require_data().read:
        raise InputError(
            "the records are not read yet",
            why="the guards look at the records, and nobody asked to read them",
            fix="ask for it in the step Data",
        )
    current = bench.history.current
    words = commands.check_plan(f"plans/{current:04}.toml").words
    bench.line.add("check-plan", (*words, "--json"), plan=current, title=f"check plan {current}")
    back = last_text(form_of(request), "back")
    return RedirectResponse(back if back in ("/run", "/promise") else "/run", 303)


def start_run(request: Request) -> Response:
    """Let the current plan run; a second run waits for the first."""
    bench = bench_of(request)
    bench.document()
    current, title = bench.history.current, bench.plan().title
    with bench.line.lock:
        number = bench.next_number()
        asked = commands.run(f"plans/{current:04}.toml", f"packets/{number:04}")
        bench.line.add("run", asked.words, plan=current, title=title, number=number)
    return RedirectResponse("/run", 303)


def cancel(request: Request) -> Response:
    """Ask a job to end; what a run finished is kept."""
    bench_of(request).line.cancel(number_of(request))
    return RedirectResponse("/run", 303)


def resume(request: Request) -> Response:
    """Take a job up where it stopped."""
    bench_of(request).line.resume(number_of(request))
    return RedirectResponse("/run", 303)


def _list_jobs(bench: Workbench) -> list[dict[str, object]]:
    """Return all jobs, the newest first, with what a page shows of them."""
    found = []
    for job in reversed(bench.line.all()):
        state = job.state
        found.append(
            {
                "job": job,
                "named": JOB_NAMES.get(job.kind, job.kind),
                "state": state,
                "seconds": f"{job.seconds:.0f} s" if state != "waiting" else "",
                "steps": steps_of_job(job, bench.workspace.packets, running=state == "running"),
                "error": job.last_words() if state in ("failed", "cancelled") else "",
                "has_packet": job.kind == "run" and state == "done",
                "text": commands.ShownCommand(words=job.words).text,
            }
        )
    return found
