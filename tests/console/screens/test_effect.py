from tests.console.screens.fixtures import scene  # noqa: F401
from tests.console.screens.scene import Scene
import re


def strip(html):
    html = re.sub(r"<svg.*?</svg>", "", html, flags=re.S)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html[html.index("<main"):html.index("</main>")]))


def test_look(scene: Scene):
    e = scene.unknown()
    scene.pass_time(minutes=31)
    c = scene.client("a")
    r = c.get(f"/effects/{e.pk}/")
    print(r.status_code, strip(r.content.decode()))
    import uuid
    r = c.post(f"/effects/{e.pk}/readback/", {"action": str(uuid.uuid4())}); print(r.status_code, strip(r.content.decode())[:900])
    scene.sandbox.reset("cards-eu")
    r = c.post(f"/effects/{e.pk}/readback/", {"action": str(uuid.uuid4())}); print(r.status_code, strip(r.content.decode())[:2500])
    r = c.get(f"/effects/{e.pk}/verdict/?says=happened"); print(r.status_code, strip(r.content.decode()))
    r = c.get(f"/effects/{e.pk}/verdict/?says=did_not_happen"); print(r.status_code, strip(r.content.decode()))
    a = scene.asked()
    b = scene.amend(a)
    r = scene.client("b").get(f"/approvals/{b.pk}/"); print(r.status_code, strip(r.content.decode()))
    r = scene.client("a").get(f"/approvals/{a.pk}/"); print(r.status_code, strip(r.content.decode()))
    n = scene.notice()
    r = c.get(f"/effects/{n.pk}/"); print(r.status_code, strip(r.content.decode()))
    r = c.get(f"/effects/{n.pk}/verdict/?says=happened"); print(r.status_code, strip(r.content.decode()))
