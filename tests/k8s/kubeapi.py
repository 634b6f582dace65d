"""The API server as the tests' node and scheduler speak with it: calls, and a list that is kept up by a watch."""

import asyncio
import json
import ssl

import httpx


class Api:
    def __init__(self, url, token, ca):
        self.client = httpx.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=60,
                                        verify=ssl.create_default_context(cafile=ca),
                                        limits=httpx.Limits(max_connections=200))

    async def call(self, method, path, body=None, kind="application/json", params=None):
        """The answer's status and object; what the network does is tried again."""
        content = None if body is None else json.dumps(body)
        for _ in range(20):
            try:
                answer = await self.client.request(method, path, content=content, params=params,
                                                   headers={"Content-Type": kind})
            except httpx.TransportError:
                await asyncio.sleep(0.2)
                continue
            if answer.status_code != 429:
                return answer.status_code, answer.json()
            await asyncio.sleep(0.2)
        raise RuntimeError(f"{method} {path}: the API server does not answer")

    async def patch(self, path, body):
        return await self.call("PATCH", path, body, "application/merge-patch+json")

    async def follow(self, path, on_event, **params):
        """Calls on_event(type, object) for what is there and for what happens to it, for ever."""
        while True:
            try:
                await self.follow_once(path, on_event, params)
            except (httpx.TransportError, ValueError):
                await asyncio.sleep(0.2)

    async def follow_once(self, path, on_event, params):
        status, listed = await self.call("GET", path, params=params)
        if status != 200:
            raise ValueError(f"{path}: {status}")
        on_event("LISTED", listed["items"])
        watch = params | {"watch": "1", "resourceVersion": listed["metadata"]["resourceVersion"]}
        async with self.client.stream("GET", path, params=watch, timeout=httpx.Timeout(60, read=None)) as answer:
            async for line in answer.aiter_lines():
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return
                on_event(event["type"], event["object"])


def name_of(thing):
    return f"{thing['metadata']['namespace']}/{thing['metadata']['name']}"


def path_of(pod, sub=""):
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}{sub}"
