"""What a pod's containers are given: environment and volumes, from the pod, config maps, secrets, tokens and images."""

import base64
import re
from pathlib import Path

import lab
from container import bind, write_files


class NotYet(Exception):
    """A container can't be configured; the words are those of its waiting state."""


class Sources:
    """Config maps, secrets and tokens of a pod's namespace."""

    def __init__(self, api, pod):
        self.api = api
        self.pod = pod
        self.namespace = pod["metadata"]["namespace"]

    async def data(self, kind, name, optional=False):
        status, thing = await self.api.call("GET", f"/api/v1/namespaces/{self.namespace}/{kind}/{name}")
        if status != 200:
            if optional:
                return {}
            raise NotYet(f'{kind[:-1]} "{name}" not found')
        plain = {key: value.encode() for key, value in thing.get("data", {}).items()}
        if kind == "secrets":
            plain = {key: base64.b64decode(value) for key, value in plain.items()}
        return plain | {key: base64.b64decode(value) for key, value in thing.get("binaryData", {}).items()}

    async def token(self, wanted):
        meta = self.pod["metadata"]
        account = self.pod["spec"]["serviceAccountName"]
        status, answer = await self.api.call(
            "POST", f"/api/v1/namespaces/{self.namespace}/serviceaccounts/{account}/token",
            {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {
                "expirationSeconds": wanted.get("expirationSeconds", 3600),
                "audiences": [wanted["audience"]] if "audience" in wanted else [],
                "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}}})
        if status != 201:
            raise NotYet(answer.get("message", "no token"))
        return answer["status"]["token"].encode()


def picked(data, items):
    return data if not items else {item["path"]: data[item["key"]] for item in items}


def field(pod, path, address):
    meta = pod["metadata"]
    found = re.fullmatch(r"metadata\.(labels|annotations)\['(.*)'\]", path)
    if found:
        return meta.get(found[1], {}).get(found[2], "")
    return {"metadata.name": meta["name"], "metadata.namespace": meta["namespace"], "metadata.uid": meta["uid"],
            "spec.nodeName": pod["spec"].get("nodeName", ""), "spec.serviceAccountName": pod["spec"].get("serviceAccountName", ""),
            "status.podIP": address, "status.hostIP": lab.HOST}[path]


async def environment(sources, container, address):
    # Those of the API server are in every container, also without enableServiceLinks.
    pod, named = sources.pod, {"KUBERNETES_SERVICE_HOST": lab.HOST, "KUBERNETES_SERVICE_PORT": str(lab.PORT)}
    for source in container.get("envFrom", []):
        kind = "configMaps" if "configMapRef" in source else "secrets"
        ref = source.get("configMapRef") or source["secretRef"]
        data = await sources.data(kind.lower(), ref["name"], ref.get("optional", False))
        named |= {source.get("prefix", "") + key: value.decode() for key, value in data.items()}
    for item in container.get("env", []):
        value = item.get("value", "")
        source = item.get("valueFrom", {})
        if "fieldRef" in source:
            value = field(pod, source["fieldRef"]["fieldPath"], address)
        for kind, key in (("configmaps", "configMapKeyRef"), ("secrets", "secretKeyRef")):
            if key in source:
                data = await sources.data(kind, source[key]["name"], source[key].get("optional", False))
                value = data.get(source[key]["key"], b"").decode()
        named[item["name"]] = re.sub(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)", lambda m: named.get(m[1], m[0]), value)
    return named


async def projected(sources, volume, address):
    files = {}
    for source in volume["sources"]:
        if "serviceAccountToken" in source:
            files[source["serviceAccountToken"]["path"]] = await sources.token(source["serviceAccountToken"])
        for kind, key in (("configmaps", "configMap"), ("secrets", "secret")):
            if key in source:
                data = await sources.data(kind, source[key]["name"], source[key].get("optional", False))
                files |= picked(data, source[key].get("items"))
        for item in source.get("downwardAPI", {}).get("items", []):
            files[item["path"]] = field(sources.pod, item["fieldRef"]["fieldPath"], address).encode()
    return files


async def make_volumes(sources, directory, images, address):
    """Volume name -> (path on the node, whether nobody may write there)."""
    made = {}
    for volume in sources.pod["spec"].get("volumes", []):
        name, path = volume["name"], directory / volume["name"]
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(0o777)
        if "image" in volume:
            made[name] = (Path(images[volume["image"]["reference"]]["root"]), True)
            continue
        if "hostPath" in volume:
            made[name] = (Path(volume["hostPath"]["path"]), False)
            continue
        if "configMap" in volume:
            ref = volume["configMap"]
            write_files(path, picked(await sources.data("configmaps", ref["name"], ref.get("optional", False)), ref.get("items")))
        elif "secret" in volume:
            ref = volume["secret"]
            write_files(path, picked(await sources.data("secrets", ref["secretName"], ref.get("optional", False)), ref.get("items")))
        elif "projected" in volume:
            write_files(path, await projected(sources, volume["projected"], address))
        made[name] = (path, "emptyDir" not in volume and "persistentVolumeClaim" not in volume)
    return made


def mounts_of(container, volumes):
    mounts = []
    for mount in container.get("volumeMounts", []):
        path, readonly = volumes[mount["name"]]
        source = path / mount["subPath"] if "subPath" in mount else path
        mounts.append(bind(source, mount["mountPath"], readonly or mount.get("readOnly", False)))
    return mounts
