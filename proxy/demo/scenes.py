"""What the demo plays: five tool loops, each with its tools, a worked example and a question.

The wording is chosen for a model of 135 million parameters. It calls a tool by itself, and answers from the result,
when it has seen that done once with the same tool: so each conversation begins with such an example. Where a call has
to come, the client says so (``tool_choice: "required"``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from proxy.core.arguments import jsontext
from proxy.core.model import Json


class ToolError(Exception):
    """The tool failed in a way that another call can mend. The text goes to the model."""


class PersonNeededError(Exception):
    """The tool failed in a way that only a person can mend. The text is for them."""


@dataclass(frozen=True, slots=True)
class DemoTool:
    """A tool with one string argument. ``final``: what it does cannot be undone, so a person is asked first."""

    name: str
    description: str
    parameter: str
    run: Callable[[str], str]
    final: bool = False

    def offer(self) -> Json:
        """The tool in OpenAI's shape."""
        schema = {"type": "object", "properties": {self.parameter: {"type": "string"}}, "required": [self.parameter]}
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": schema},
        }


@dataclass(frozen=True, slots=True)
class Scene:
    """One loop. ``calls`` are the tool and the argument of each call that should come, in order.

    ``says``: words that the person should read at the end.
    """

    title: str
    about: str
    tool: DemoTool
    example: tuple[Json, ...]
    question: str
    choice: Literal["auto", "required"]
    calls: tuple[tuple[str, str], ...]
    says: tuple[str, ...]

    def went_well(self, calls: tuple[tuple[str, str], ...], text: str) -> bool:
        """Whether the calls that were made, and the last words, are what they should be."""
        return calls == self.calls and all(word in text for word in self.says)


def example(tool: DemoTool, question: str, results: dict[str, str], answer: str) -> tuple[Json, ...]:
    """A conversation that went well: ``results`` are the calls' arguments and what came back for each."""
    calls = [
        {
            "id": f"example_{at}",
            "type": "function",
            "function": {"name": tool.name, "arguments": jsontext.dumps({tool.parameter: argument})},
        }
        for at, argument in enumerate(results, 1)
    ]
    came_back = [
        {"role": "tool", "tool_call_id": call["id"], "content": result}
        for call, result in zip(calls, results.values(), strict=True)
    ]
    return (
        {"role": "user", "content": question},
        {"role": "assistant", "content": None, "tool_calls": calls},
        *came_back,
        {"role": "assistant", "content": answer},
    )


NOTES = "docs/notes.txt"
OLD = "old.txt"


def furnish(folder: Path) -> None:
    """Put the files that the scenes are about into ``folder``."""
    (folder / NOTES).parent.mkdir()
    (folder / NOTES).write_text("The key is under the blue pot.")
    (folder / OLD).write_text("Nobody needs this any more.")


def scenes(folder: Path) -> tuple[Scene, ...]:
    """The five loops. The files are real and in ``folder``, the weather is made up, the calendar refuses on purpose."""

    def inside(path: str) -> Path:
        place = (folder / path).resolve()
        if not place.is_relative_to(folder.resolve()) or not place.is_file():
            raise ToolError(f"Error: there is no file {path}. Call {read.name} with the path {NOTES} instead.")
        return place

    def delete_file(path: str) -> str:
        inside(path).unlink()
        return f"Deleted {path}."

    def list_events(day: str) -> str:
        raise PersonNeededError(f"The calendar refused (401): its key has expired, so nothing of {day} can be seen.")

    def get_weather(city: str) -> str:
        return {"Oslo": "Snow, -3 degrees Celsius.", "Paris": "Rain, 11 degrees Celsius."}.get(city, "Not known.")

    weather = DemoTool("get_weather", "Get the weather of a city.", "city", get_weather)
    read = DemoTool("read_file", "Read a text file.", "path", lambda path: inside(path).read_text())
    events = DemoTool("list_events", "List the events of a day in the calendar.", "day", list_events)
    delete = DemoTool("delete_file", "Delete a file for good.", "path", delete_file, final=True)
    return (
        Scene(
            "One call",
            "The model calls a tool, gets the result and answers from it.",
            weather,
            example(
                weather,
                "What is the weather in Rome?",
                {"Rome": "Sunny, 24 degrees Celsius."},
                "It is sunny in Rome, at 24 degrees.",
            ),
            "What is the weather in Oslo?",
            "required",
            (("get_weather", "Oslo"),),
            ("Oslo", "-3"),
        ),
        Scene(
            "Two calls in one turn",
            "Here nothing is forced: the model writes both calls by itself. Both results go back together.",
            weather,
            example(
                weather,
                "What is the weather in Rome and in Madrid?",
                {"Rome": "Sunny, 24 degrees Celsius.", "Madrid": "Cloudy, 19 degrees Celsius."},
                "In Rome it is sunny at 24 degrees, in Madrid cloudy at 19 degrees.",
            ),
            "What is the weather in Oslo and in Paris?",
            "auto",
            (("get_weather", "Oslo"), ("get_weather", "Paris")),
            ("Oslo", "snow", "Paris", "rain"),
        ),
        Scene(
            "A tool fails, and the model mends it",
            "The error says what to do. The model calls again with the other path.",
            read,
            example(read, "Read the file todo.txt.", {"todo.txt": "Buy milk."}, "Buy milk."),
            "Read the file notes.txt.",
            "required",
            (("read_file", "notes.txt"), ("read_file", NOTES)),
            ("under the blue pot",),
        ),
        Scene(
            "A tool fails, and only a person can mend it",
            "The key was refused. Calling again cannot help, so the client ends the loop and tells the person.",
            events,
            example(
                events,
                "What is in my calendar on Friday?",
                {"Friday": "10:00 dentist."},
                "On Friday you go to the dentist at 10:00.",
            ),
            "What is in my calendar on Monday?",
            "required",
            (("list_events", "Monday"),),
            ("its key has expired",),
        ),
        Scene(
            "A tool that cannot be undone",
            "The client asks the person before it runs the call.",
            delete,
            example(
                delete,
                "Delete the file draft.txt.",
                {"draft.txt": "Deleted draft.txt."},
                "I deleted the file draft.txt.",
            ),
            "Delete the file old.txt.",
            "required",
            (("delete_file", OLD),),
            (),  # that depends on what the person said
        ),
    )
