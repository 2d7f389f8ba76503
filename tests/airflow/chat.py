"""Notifiers as other providers have them: their text is a template."""

from airflow.sdk import BaseNotifier

__all__ = ["SENT", "AsyncChat", "Chat"]

SENT: list[str] = []
"""The texts that were sent."""


class Chat(BaseNotifier):
    template_fields = ("text",)

    def __init__(self, text="{{ lake_health.sentence }}", **more):
        super().__init__(**more)
        self.text = text

    def notify(self, context):
        SENT.append(self.text)


class AsyncChat(Chat):
    async def async_notify(self, context):
        SENT.append(f"async: {self.text}")
