"""The server's own description of its API, and whether answers are as it says."""

import copy

import jsonschema

METHODS = ("get", "put", "post", "patch", "delete")


class Description:
    def __init__(self, document):
        self.document = document
        self.strict = close(document)

    def operations(self):
        """(method, path, operation) of each."""
        for path, item in self.document["paths"].items():
            for method in METHODS:
                if method in item:
                    yield method, path, item[method]

    def resolve(self, value):
        while "$ref" in value:
            found = self.document
            for name in value["$ref"].removeprefix("#/").split("/"):
                found = found[name.replace("~1", "/").replace("~0", "~")]
            value = {key: it for key, it in value.items() if key != "$ref"} | found
        return value

    def check_value(self, value, schema, strict=False):
        """Raises when it is not as the schema says; strict: nor when it has a member that the schema does not name."""
        document = self.strict if strict else self.document
        schema = close(schema) if strict else schema
        jsonschema.Draft202012Validator(schema | {"components": document["components"]}).validate(value)

    def check_answer(self, method, path, answer):
        """An answer (of httpx) must be one that the operation names, with its headers, type and members."""
        where = f"{method} {path} {answer.status_code}"
        responses = self.document["paths"][path][method]["responses"]
        assert str(answer.status_code) in responses, f"{where} is not described: {answer.text[:300]}"
        response = self.resolve(responses[str(answer.status_code)])
        for name, header in response.get("headers", {}).items():
            header = self.resolve(header)
            assert name in answer.headers or not header.get("required"), f"{where} has no {name}"
            if name in answer.headers:
                text, schema = answer.headers[name], self.resolve(header["schema"])
                self.check_value(int(text) if schema.get("type") == "integer" else text, schema)
        if "content" not in response:
            assert answer.content == b"", where
            return
        kind = answer.headers["content-type"]
        assert kind in response["content"], f"{where} is {kind}"
        if kind == "application/json":
            self.check_value(answer.json(), response["content"][kind]["schema"], strict=True)


def close(value, names=None):
    """A copy whose objects have only the members that they name; what others extend stays open under another name."""
    value = copy.deepcopy(value)
    schemas = value.get("components", {}).get("schemas", {})
    opened = {f"{name}.open": copy.deepcopy(schema) for name, schema in schemas.items()}

    def open_bases(part):
        for item in part.get("allOf", []):
            if "$ref" in item and not item["$ref"].endswith(".open"):
                item["$ref"] += ".open"

    def walk(part, base=False):
        if isinstance(part, list):
            for item in part:
                walk(item)
        if not isinstance(part, dict):
            return
        open_bases(part)
        for name, item in part.items():
            if name in ("allOf", "anyOf", "oneOf", "not") and "properties" in part:
                for choice in item if isinstance(item, list) else [item]:
                    walk(choice, base=True)  # of the object that part closes
            else:
                walk(item)
        if isinstance(part.get("properties"), dict) and "additionalProperties" not in part and not base:
            part["unevaluatedProperties"] = False

    walk(value)
    for schema in opened.values():
        open_bases(schema)  # what extends is extended itself
        for item in schema.get("properties", {}).values():
            walk(item)
    schemas.update(opened)
    return value
