"""A VM's pending question, which blocks it until somebody answers it in vCenter."""

from __future__ import annotations

from pyVmomi import vim

QUESTION = "runtime.question"

_LONGEST = 600


def question_words(question: vim.vm.QuestionInfo) -> str:
    """The question's text and its choices, on one line.

    `"This virtual machine might have been moved or copied." (choices: Cancel, I Moved It, I Copied It)`
    """
    text = " ".join(question.text.split())
    if len(text) > _LONGEST:
        text = text[:_LONGEST] + " ..."
    choices = [choice.label or choice.key for choice in question.choice.choiceInfo or ()]
    return f'"{text}"' + (f" (choices: {', '.join(choices)})" if choices else "")
