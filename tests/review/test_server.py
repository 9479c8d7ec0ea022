"""Who may talk to the page, and what it answers."""

import json
import re

import pytest
from PIL import Image
from reviews import made_up_review, toy_pool
from starlette.testclient import TestClient

from medi.review.security import LARGEST_BODY, Doorkeeper
from medi.review.server import application

HOSTILE = ["<script>alert(1)</script>", "../../etc/passwd", "\u202egpj.exe", "שלום", '"><img src=x onerror=alert(1)>']
PORT = 4321


@pytest.fixture
def review(tmp_path):
    return made_up_review(tmp_path)


@pytest.fixture
def keeper():
    return Doorkeeper(PORT)


@pytest.fixture
def stranger(review, keeper):
    """A client without the cookie."""
    return TestClient(application(review, keeper), base_url=f"http://127.0.0.1:{PORT}")


@pytest.fixture
def client(stranger, keeper):
    assert stranger.get(f"/?token={keeper.token}").status_code == 200
    return stranger


def post(client, action, headers=None, **arguments):
    seq = arguments.pop("seq", None)
    if seq is None:
        seq = client.get("/api/state").json()["seq"]
    return client.post("/api/actions", json={"seq": seq, "action": action, **arguments}, headers=headers)


@pytest.mark.parametrize(
    "path", ["/", "/?token=wrong", "/api/state", "/api/pool", "/photo/0", "/static/app.js", "/nothing", "/?token="]
)
def test_without_the_cookie_everything_is_refused(stranger, path):
    assert stranger.get(path).status_code == 401


def test_writing_without_the_cookie_is_refused(stranger, review):
    answer = stranger.post("/api/actions", json={"seq": 0, "action": "name", "group": 0, "name": "x"})
    assert answer.status_code == 401
    assert review.history.seq == 0


def test_the_token_works_once_and_gives_a_cookie_that_scripts_and_other_sites_cannot_use(review, keeper):
    app = application(review, keeper)
    first, second = (TestClient(app, base_url=f"http://127.0.0.1:{PORT}") for _ in range(2))
    answer = first.get(f"/?token={keeper.token}")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert keeper.token not in cookie
    assert second.get(f"/?token={keeper.token}").status_code == 401
    assert first.get("/").status_code == 200
    assert first.get("/api/state").status_code == 200


def test_the_token_is_no_cookie_and_the_cookie_no_token(stranger, keeper):
    stranger.cookies.set(keeper.cookie, keeper.token)
    assert stranger.get("/api/state").status_code == 401


@pytest.mark.parametrize("host", ["evil.example", "evil.example:4321", "127.0.0.1.evil.example", "0.0.0.0:4321", ""])
def test_another_host_name_is_refused_before_anything_else(client, keeper, host):
    assert client.get("/api/state", headers={"Host": host}).status_code == 403
    assert client.get(f"/?token={keeper.token}", headers={"Host": host}).status_code == 403


@pytest.mark.parametrize("host", ["127.0.0.1:4321", "localhost:4321", "localhost:9999", "LOCALHOST"])
def test_this_machine_may_be_called_by_its_names(client, host):
    assert client.get("/api/state", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": f"http://127.0.0.1:{PORT}", "Sec-Fetch-Site": "cross-site"},
    ],
)
def test_a_write_from_another_site_is_refused(client, review, headers):
    assert post(client, "name", headers=headers, group=0, name="x").status_code == 403
    assert review.history.seq == 0


def test_a_write_from_the_page_itself_is_taken(client):
    headers = {"Origin": f"http://127.0.0.1:{PORT}", "Sec-Fetch-Site": "same-origin"}
    answer = post(client, "name", headers=headers, group=0, name="x")
    assert answer.status_code == 200
    assert answer.json()["groups"][0]["name"] == "x"
    assert answer.headers["medi-undo"] == "name"


@pytest.mark.parametrize("path", ["/", "/api/state", "/photo/0", "/static/app.js", "/nothing", "/photo/999"])
def test_every_answer_binds_the_browser(client, path):
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "access-control-allow-origin" not in headers


def test_refusals_bind_the_browser_too(stranger):
    assert stranger.get("/api/state").headers["x-content-type-options"] == "nosniff"
    assert stranger.options("/api/actions", headers={"Origin": "https://evil.example"}).status_code in (401, 403)


def test_a_stale_write_is_answered_409_and_changes_nothing(client):
    assert post(client, "name", group=0, name="a").status_code == 200
    late = post(client, "name", seq=0, group=0, name="b")
    assert late.status_code == 409
    assert late.json()["error"]
    assert client.get("/api/state").json()["groups"][0]["name"] == "a"


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"[]", b"null", b"{}", b"\xff", b"[" * 100_000),
        *(b'{"seq": 0}', b'{"seq": "0", "action": "undo"}', b'{"seq": 0, "action": "fly"}'),
    ],
)
def test_nonsense_is_answered_400_with_a_message(client, body):
    answer = client.post("/api/actions", content=body)
    assert answer.status_code == 400
    assert answer.json()["error"].endswith(".")


def test_a_large_body_is_refused_stated_or_not(client, review):
    body = json.dumps({"seq": 0, "action": "name", "group": 0, "name": "x" * LARGEST_BODY}).encode()
    assert client.post("/api/actions", content=body).status_code == 413
    assert client.post("/api/actions", content=iter([body[:500_000], body[500_000:]])).status_code == 413
    assert review.history.seq == 0


@pytest.mark.parametrize(
    "path",
    [
        *("/photo/../clusters.csv", "/photo/..%2f..%2fetc%2fpasswd", "/photo/000.jpg", "/photo/-1", "/photo/1e3"),
        *("/static/../session.py", "/static/..%2fsession.py", "/static/%2e%2e/session.py"),
        *("/photo/999999", "/review.jsonl"),
    ],
)
def test_nothing_but_numbered_photos_and_the_page_can_be_had(client, path):
    assert client.get(path).status_code == 404


def test_photos_are_encoded_anew_without_metadata(client, review, tmp_path):
    exif = Image.Exif()
    exif[0x010E] = "SECRET PLACE"
    exif[0x0112] = 6
    Image.new("RGB", (3000, 1500), "red").save(review.folder.novel / "000.jpg", exif=exif, comment=b"SECRET PLACE")
    for size, longest in (("thumb", 256), ("full", 1600)):
        answer = client.get(f"/photo/0?size={size}")
        assert answer.headers["content-type"] == "image/jpeg"
        assert b"SECRET" not in answer.content
        assert b"Exif" not in answer.content
        picture = tmp_path / "got.jpg"
        picture.write_bytes(answer.content)
        with Image.open(picture) as image:
            assert image.size == (longest // 2, longest)  # upright
    assert client.get("/photo/0?size=huge").status_code == 400


@pytest.mark.parametrize(
    "content", [b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>", b"<html>", b""]
)
def test_what_is_no_photo_is_not_served(client, review, content):
    (review.folder.novel / "003.jpg").write_bytes(content)
    answer = client.get("/photo/3")
    assert answer.status_code == 404
    assert b"<" not in answer.content
    assert answer.headers["content-type"].startswith("text/plain")


def test_a_moved_photo_is_said_to_be_gone(client, review):
    (review.folder.novel / "003.jpg").unlink()
    answer = client.get("/photo/3")
    assert answer.status_code == 404
    assert "not where it was" in answer.text


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_come_out_as_text(client, name):
    answer = post(client, "name", group=0, name=name)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["groups"][0]["name"] == name


def test_a_name_of_ten_thousand_characters_is_refused_without_being_repeated(client):
    answer = post(client, "name", group=0, name="x" * 10_000)
    assert answer.status_code == 400
    assert len(answer.content) < 200


def test_hostile_paths_come_out_as_text(tmp_path):
    pool = toy_pool()
    paths = [f"{number} {'<script>' if number % 2 else chr(0x202E)}.jpg" for number in range(len(pool) - 1)]
    review = made_up_review(tmp_path, pool, paths=[*paths, "\udcff.jpg"])
    keeper = Doorkeeper(PORT)
    client = TestClient(application(review, keeper), base_url=f"http://127.0.0.1:{PORT}")
    client.get(f"/?token={keeper.token}")
    state = client.get("/api/state")
    assert [item["path"] for item in state.json()["items"]] == [*paths, "\udcff.jpg"]
    assert client.get(f"/photo/{len(paths)}").status_code == 200


def test_the_page_loads_only_itself(client):
    names = {"/static/app.js", "/static/style.css", "/static/parts.css"}
    page = client.get("/").text
    assert set(re.findall(r'(?:src|href)="(/[^"]*)"', page)) == names
    assert "<script>" not in page
    assert "style=" not in page
    seen, wanted = set(), {"app.js"}
    while wanted - seen:
        name = (wanted - seen).pop()
        seen.add(name)
        answer = client.get(f"/static/{name}")
        assert answer.headers["content-type"].startswith("text/javascript")
        assert "innerHTML" not in answer.text
        assert "http://" not in answer.text.replace("http://www.w3.org", "")
        wanted |= set(re.findall(r'from "\./([a-z]+\.js)"', answer.text))
    assert "keys.js" in seen


def test_the_state_has_the_agreed_shape(client):
    state = client.get("/api/state").json()
    assert {"seq", "groups", "items", "question"} <= set(state)
    assert all({"id", "name", "items", "confidence"} <= set(group) for group in state["groups"])
    assert all({"id", "path", "kind", "confidence"} <= set(item) for item in state["items"])
    assert state["question"] is None or {"a", "b"} <= set(state["question"])


def test_previews_change_nothing(client, review):
    split = client.get("/api/split?group=0&parts=3").json()
    assert sorted(item for part in split["parts"] for item in part) == list(range(6))
    assert set(range(6)) <= set(client.get("/api/candidates?group=0").json()["items"])
    assert client.get("/api/split?group=0&parts=99").status_code == 400
    assert client.get("/api/split?group=x&parts=2").status_code == 400
    pool = client.get("/api/pool").json()
    assert sorted(pool["order"]) == list(range(len(review.folder.start)))
    assert len(pool["positions"]) == len(review.folder.start)
    assert review.history.seq == 0


def test_the_page_works_without_a_saved_pool(tmp_path):
    review, keeper = made_up_review(tmp_path, learning=False), Doorkeeper(PORT)
    client = TestClient(application(review, keeper), base_url=f"http://127.0.0.1:{PORT}")
    client.get(f"/?token={keeper.token}")
    assert client.get("/api/pool").json()["positions"] is None
    assert client.get("/api/state").json()["question"] is None
    refused = post(client, "split", group=0, parts=2)
    assert refused.status_code == 400
    assert "no saved pool" in refused.json()["error"]
    assert post(client, "merge", groups=[0, 1]).status_code == 200
