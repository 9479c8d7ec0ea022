"""Who may talk to the page, and what it answers."""

import json
import re
from io import BytesIO
from urllib.parse import unquote

import pytest
from PIL import Image
from reviews import act, made_up_review, toy_pool, write_discovery
from starlette.testclient import TestClient

from medi.review.page import LARGEST_BODY, application
from medi.review.server import Doorkeeper, Guard, serve
from medi.review.session import opened

HOSTILE = ["<script>alert(1)</script>", "../../etc/passwd", "\u202egpj.exe", "שלום", '"><img src=x onerror=alert(1)>']
PORT = 4321


@pytest.fixture
def review(tmp_path):
    return made_up_review(tmp_path)


@pytest.fixture
def keeper():
    return Doorkeeper(PORT)


def visitor(review, keeper) -> TestClient:
    return TestClient(Guard(application(review, print), keeper), base_url=f"http://127.0.0.1:{PORT}")


@pytest.fixture
def stranger(review, keeper):
    """A client without the cookie."""
    return visitor(review, keeper)


def admitted(review) -> TestClient:
    keeper = Doorkeeper(PORT)
    client = visitor(review, keeper)
    assert client.get(f"/?token={keeper.token}").status_code == 200
    return client


@pytest.fixture
def client(review):
    return admitted(review)


def post(client, action, headers=None, **arguments):
    seq = arguments.pop("seq", None)
    if seq is None:
        seq = client.get("/api/state").json()["seq"]
    return client.post("/api/actions", json={"seq": seq, "action": action, **arguments}, headers=headers)


@pytest.mark.parametrize(
    "path", ["/", "/?token=wrong", "/api/state", "/api/pool", "/photo/0", "/static/app.js", "/nothing", "/?token="]
)
def test_without_the_cookie_everything_is_refused(stranger, path):
    answer = stranger.get(path)
    assert answer.status_code == 401
    assert answer.headers["x-content-type-options"] == "nosniff", "refusals bind the browser too"


def test_writing_without_the_cookie_is_refused(stranger, review):
    action = {"seq": 0, "action": "name", "group": 0, "name": "x"}
    assert stranger.post("/api/actions", json=action).status_code == 401
    assert stranger.options("/api/actions", headers={"Origin": "https://evil.example"}).status_code == 403
    assert review.history.seq == 0


def test_the_token_works_once_and_gives_a_cookie_that_scripts_and_other_sites_cannot_use(review, keeper):
    first, second = visitor(review, keeper), visitor(review, keeper)
    cookie = first.get(f"/?token={keeper.token}").headers["set-cookie"]
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
def test_another_host_name_is_refused_before_anything_else(stranger, client, keeper, host):
    assert client.get("/api/state", headers={"Host": host}).status_code == 403
    assert stranger.get(f"/?token={keeper.token}", headers={"Host": host}).status_code == 403


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
    assert "“x”" in unquote(answer.headers["medi-undo"])
    assert answer.headers["medi-redo"] == ""


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
    "content", [b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>", b"<html>", b"", None]
)
def test_what_is_no_photo_or_gone_is_not_served(client, review, content):
    path = review.folder.novel / "003.jpg"
    path.unlink() if content is None else path.write_bytes(content)
    answer = client.get("/photo/3")
    assert answer.status_code == 404
    assert b"<" not in answer.content
    assert answer.headers["content-type"].startswith("text/plain")


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
    client = admitted(made_up_review(tmp_path, pool, paths=[*paths, "\udcff.jpg"]))
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


def test_previews_change_nothing(client, review):
    split = client.get("/api/split?group=0&parts=3").json()
    assert sorted(item for part in split["parts"] for item in part) == list(range(6))
    assert set(range(6)) <= set(client.get("/api/candidates?group=0").json()["items"])
    places = client.get("/api/places?items=7&items=8").json()["places"]
    assert places[0]["group"] == 1
    assert [place["known"] for place in places if "known" in place] == ["rose", "tulip"]
    assert client.get("/api/places?items=x").status_code == client.get("/api/places").status_code == 400
    assert client.get("/api/split?group=0&parts=99").status_code == 400
    assert client.get("/api/split?group=x&parts=2").status_code == 400
    pool = client.get("/api/pool").json()
    assert sorted(pool["order"]) == list(range(len(review.folder.start)))
    assert len(pool["positions"]) == len(review.folder.start)
    assert review.history.seq == 0


def test_photos_of_known_classes_are_had_by_number_and_encoded_anew(client, review):
    assert client.get("/known/0/0").status_code == 404, "the class has no photos"
    for number in range(5):
        photo = Image.new("RGB", (900, 600), (20 * number, 90, 90))
        photo.save(review.folder.known / "tulip" / f"{number}.png")
    answer = client.get("/known/1/2")
    assert answer.headers["content-type"] == "image/jpeg"
    assert max(Image.open(BytesIO(answer.content)).size) == 256
    for path in ("/known/1/4", "/known/2/0", "/known/x/0", "/known/-1/0"):
        assert client.get(path).status_code == 404


def test_the_page_works_without_a_saved_pool(tmp_path):
    client = admitted(made_up_review(tmp_path, learning=False))
    assert client.get("/api/pool").json()["positions"] is None
    assert client.get("/api/state").json()["question"] is None
    assert post(client, "split", group=0, parts=2).status_code == 400
    assert post(client, "merge", groups=[0, 1]).status_code == 200


@pytest.mark.parametrize("how", ["deleted", "put back", "added to", "another"])
def test_a_journal_that_another_program_touched_ends_the_review_and_nothing_is_lost(review, how):
    act(review, "name", group=0, name="holly")
    journal, stops = review.folder.journal, []
    earlier = journal.read_bytes()
    act(review, "name", group=1, name="aster")
    last = journal.read_bytes()
    if how == "deleted":
        journal.unlink()
    else:
        journal.write_bytes({"put back": earlier, "added to": last + b"{}\n", "another": b""}[how])
    keeper = Doorkeeper(PORT)
    client = TestClient(Guard(application(review, stops.append), keeper), base_url=f"http://127.0.0.1:{PORT}")
    client.get(f"/?token={keeper.token}")
    body = {"seq": 2, "action": "name", "group": 2, "name": "lily"}
    answer = client.post("/api/actions", json=body)
    assert answer.status_code == 409
    assert [str(error) for error in stops] == [answer.json()["error"]]
    kept = journal.with_name("review-kept.jsonl")
    assert [json.loads(line) for line in kept.open()] == [json.loads(line) for line in last.splitlines()]


def test_a_journal_that_was_written_anew_with_the_same_lines_is_no_fault(review):
    act(review, "name", group=0, name="holly")
    content = review.folder.journal.read_bytes()
    review.folder.journal.unlink()
    review.folder.journal.write_bytes(content)
    act(review, "name", group=1, name="aster")
    assert len(review.folder.journal.read_bytes().splitlines()) == 2


def test_a_review_that_is_stopped_says_the_next_command(tmp_path, monkeypatch):
    folder, said = write_discovery(tmp_path, toy_pool()), []
    with opened(folder, "a test", learning=False) as review:
        review.act({"seq": 0, "action": "name", "group": 0, "name": "aster"})

    def stopped(self, sockets=None):
        raise KeyboardInterrupt

    monkeypatch.setattr("uvicorn.Server.run", stopped)
    with pytest.raises(KeyboardInterrupt):
        serve(folder, None, browser=False, announce=said.append, warn=said.append)
    assert said[0].startswith("http://127.0.0.1:")
    assert f"medi accept {folder} --into" in said[-1]
