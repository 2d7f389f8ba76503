"""Finds the questions: every module in the folder ``questions`` is one question."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from benchmarks import questions
from benchmarks.question import Question

__all__ = ["find_question", "question_names"]


def question_names() -> list[str]:
    """Return the names of all questions, sorted."""
    return sorted(module.name for module in iter_modules(questions.__path__))


def find_question(name: str) -> Question[Any, Any]:
    """Return the question of this name."""
    module = import_module(f"{questions.__name__}.{name}")
    question: Question[Any, Any] = module.QUESTION
    return question
