"""File calls of a sandbox, in few words."""

import base64
import json
import urllib.parse


def encode(path):
    """A path of text or bytes as a query value."""
    return urllib.parse.quote(path, safe="/")


def put(box, path, data=b"", **fields):
    """The JSON upload."""
    body = {"path": path, "content": base64.b64encode(data).decode()} | fields
    return box.client.post(f"{box.url}/files", content=json.dumps(body))


def get(box, path):
    """The JSON download."""
    return box.client.get(f"{box.url}/files?path={encode(path)}")


def content(box, path):
    answer = get(box, path)
    assert answer.status_code == 200, answer.text
    data = base64.b64decode(answer.json()["content"], validate=True)
    assert answer.json()["size"] == len(data)
    return data


def listing(box, path, **params):
    return box.client.get(f"{box.url}/files/list", params={"path": path} | params)


def raw_put(box, path, data=b"", headers=None, **params):
    query = urllib.parse.urlencode(params)
    return box.client.put(f"{box.url}/files/raw?path={encode(path)}&{query}", content=data, headers=headers)


def raw_get(box, path, method="GET", **headers):
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    return box.client.request(method, f"{box.url}/files/raw?path={encode(path)}", headers=headers)


def stat(box, path, **params):
    return box.client.get(f"{box.url}/files/stat", params={"path": path} | params)


def remove(box, path, **params):
    return box.client.delete(f"{box.url}/files", params={"path": path} | params)


def refused(answer, status, code):
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert body["code"] == code and body["detail"] and body["request_id"], body


def temporaries(box, directory="/"):
    """What uploads have left anywhere below a directory."""
    return box.out(f"find {directory} -xdev -name '.orchard-*' 2>/dev/null; true")
