"""GET /openapi.json: valid, its examples are what it says, and the server does what it says.

That the router has the same operations is held by tests/unit/worker/test_openapi.c.
"""

import re

import pytest

pytest.importorskip("jsonschema", reason="NOT CHECKED: needs jsonschema and openapi-spec-validator")
validator = pytest.importorskip("openapi_spec_validator", reason="NOT CHECKED: needs openapi-spec-validator")

from description import Description  # noqa: E402


@pytest.fixture(scope="module")
def description(server):
    answer = server.client.get("/openapi.json")
    assert answer.status_code == 200 and answer.headers["content-type"] == "application/json"
    return Description(answer.json())


def test_the_document_is_valid(description):
    validator.validate(description.document)


def test_it_needs_a_key_like_what_it_describes(server):
    assert server.client.get("/openapi.json", headers={"X-API-Key": "wrong-key-1"}).status_code == 403


def media(description):
    """(where, media type object) of each body."""
    for method, path, operation in description.operations():
        where = f"{method} {path}"
        for kind, content in operation.get("requestBody", {}).get("content", {}).items():
            yield f"{where} request {kind}", content
        for status, response in operation["responses"].items():
            for kind, content in description.resolve(response).get("content", {}).items():
                yield f"{where} {status} {kind}", content


def test_each_body_has_an_example_and_each_example_is_right(description):
    count = 0
    for where, content in media(description):
        examples = [description.resolve(example)["value"] for example in content.get("examples", {}).values()]
        examples += [content["example"]] if "example" in content else []
        assert examples or not where.endswith("json"), f"no example: {where}"  # any bytes are one of the others
        for example in examples:
            description.check_value(example, content["schema"], strict=True)
            count += 1
    assert count > 40


def test_each_parameter_is_described_and_its_example_is_right(description):
    for method, path, operation in description.operations():
        parameters = [description.resolve(parameter) for parameter in operation["parameters"]]
        assert set(re.findall(r"\{(\w+)\}", path)) == {p["name"] for p in parameters if p["in"] == "path"}, path
        for parameter in parameters:
            assert parameter["required"] if parameter["in"] == "path" else True
            if "example" in parameter:
                description.check_value(parameter["example"], parameter["schema"])


def test_allow_names_the_methods_that_are_described(server, description):
    described = {}
    for method, path, _ in description.operations():
        described.setdefault(path, set()).add(method.upper())
    for path, methods in described.items():
        concrete = path.replace("{sandbox_id}", "x1").replace("{job_id}", "0b0e7a52-6f3c-4c5b-9d0a-6f1f0a5d1c77")
        answer = server.client.options(concrete)
        assert answer.status_code == 204, path
        extra = {"OPTIONS"} | ({"HEAD"} if "GET" in methods else set())
        assert set(answer.headers["allow"].split(", ")) == methods | extra, path


def test_schemas_that_are_left_over(description):
    """A component that nothing refers to is one that a change forgot."""
    text = str(description.document)
    for kind, members in description.document["components"].items():
        if kind != "securitySchemes":
            for name in members:
                assert f"'#/components/{kind}/{name}'" in text, f"{kind}/{name}"


class Caller:
    """Calls operations by their path as described, and checks each answer."""

    def __init__(self, server, description):
        self.client, self.description, self.seen = server.client, description, set()

    def __call__(self, method, path, status=200, sandbox="", job="", **more):
        url = path.replace("{sandbox_id}", sandbox).replace("{job_id}", job)
        answer = self.client.request(method, url, **more)
        assert answer.status_code == status, (method, path, answer.text)
        self.description.check_answer(method, path, answer)
        self.seen.add((method, path, status))
        return answer


@pytest.fixture
def call(server, description):
    return Caller(server, description)


def test_service_answers_as_described(call):
    for path in ("/", "/health", "/ready", "/resources", "/metrics", "/openapi.json"):
        call("get", path)


def test_sandboxes_answer_as_described(call, server):
    made = call("post", "/sandboxes", json={"image": "default", "labels": {"kind": "described"}}).json()["sandbox_id"]
    call("get", "/sandboxes/{sandbox_id}/wait", sandbox=made, params={"timeout": 60})
    call("post", "/sandboxes/{sandbox_id}/heartbeat", sandbox=made)
    call("get", "/sandboxes/{sandbox_id}", sandbox=made)
    call("patch", "/sandboxes/{sandbox_id}", sandbox=made, json={"ttl_seconds": 60})
    page = call("get", "/sandboxes", params={"label": "kind=described", "limit": 1}).json()
    assert [item["sandbox_id"] for item in page["sandboxes"]] == [made]
    call("delete", "/sandboxes/{sandbox_id}", sandbox=made)
    egress = call("post", "/sandboxes", json={"image": "default", "sandbox_id": "x-egress", "disk": 0,
                                               "egress": {"allow": []}}).json()["sandbox_id"]
    call("get", "/sandboxes/{sandbox_id}", sandbox=egress)
    call("post", "/sandboxes", 409, json={"image": "default", "sandbox_id": "x-egress"})
    call("delete", "/sandboxes/{sandbox_id}", sandbox=egress)
    call("get", "/sandboxes/{sandbox_id}", 404, sandbox=egress)
    call("post", "/sandboxes", 422, json={"image": "", "cpu": "x", "env": {"": "1"}})
    call("post", "/sandboxes", 422, content=b"{")
    call("post", "/sandboxes", 403, json={"image": "dir:/etc"})
    call("get", "/sandboxes", 422, params={"limit": 0})
    call("get", "/sandboxes", 401, headers={"X-API-Key": ""})
    call("get", "/sandboxes", 403, headers={"X-API-Key": "wrong-key-1"})


def test_commands_answer_as_described(call, box):
    ids = {"sandbox": box.id}
    job = call("post", "/sandboxes/{sandbox_id}/exec", json={"command": "echo hi; exit 3"}, **ids).json()["job_id"]
    call("post", "/sandboxes/{sandbox_id}/exec", json={"command": ["nosuch"]}, **ids)
    call("post", "/sandboxes/{sandbox_id}/exec", json={"command": "kill -9 $$", "encoding": "base64"}, **ids)
    call("post", "/sandboxes/{sandbox_id}/exec", json={"command": "sleep 60", "timeout_seconds": 0.1}, **ids)
    call("post", "/sandboxes/{sandbox_id}/exec", 422, json={"command": []}, **ids)
    cat = call("post", "/sandboxes/{sandbox_id}/exec", json={"command": "cat", "stdin_open": True, "wait": False},
               **ids).json()["job_id"]
    queued = call("post", "/sandboxes/{sandbox_id}/exec", json={"command": "true", "wait": False}, **ids).json()["job_id"]
    call("get", "/jobs/{job_id}", job=queued)
    call("post", "/jobs/{job_id}/stdin", job=cat, content=b"text\n")
    call("get", "/jobs/{job_id}", job=cat)
    call("get", "/sandboxes/{sandbox_id}/jobs", **ids)
    call("post", "/jobs/{job_id}/stdin", job=cat, params={"eof": 1})
    call("get", "/jobs/{job_id}/wait", job=cat, params={"timeout": 60})
    call("post", "/jobs/{job_id}/stdin", 409, job=cat, content=b"more")
    call("post", "/jobs/{job_id}/stdin", 422, job=cat, params={"eof": 2})
    call("get", "/jobs/{job_id}/output", job=cat, params={"offset": 1})
    call("get", "/jobs/{job_id}/output", 416, job=cat, params={"offset": 99})
    call("get", "/jobs/{job_id}/stream", job=cat)
    call("get", "/jobs/{job_id}/stream", 422, job=cat, headers={"Last-Event-ID": "1"})
    call("post", "/jobs/{job_id}/cancel", job=job)
    call("get", "/jobs/{job_id}", 404, job="0b0e7a52-6f3c-4c5b-9d0a-6f1f0a5d1c77")


def test_an_undescribed_member_is_seen(description):
    """What checks the answers above can fail."""
    plain = {"status": "healthy"}
    schema = description.document["paths"]["/health"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    description.check_value(plain, schema, strict=True)
    with pytest.raises(Exception, match="unevaluated|Unevaluated"):
        description.check_value(plain | {"more": 1}, schema, strict=True)
    problem = description.resolve(description.document["paths"]["/jobs/{job_id}"]["get"]["responses"]["404"])
    value = {"detail": "x", "code": "not_found", "request_id": "x"}
    problem = problem["content"]["application/json"]["schema"]
    description.check_value(value, problem, strict=True)
    for wrong in (value | {"more": 1}, value | {"code": "conflict"}):
        with pytest.raises(Exception):
            description.check_value(wrong, problem, strict=True)
