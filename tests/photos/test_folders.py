"""Folders as people have them."""

import os

import pytest
from pictures import noise
from systems import posix

from medi.core.errors import InputError
from medi.photos.folders import class_of, find_photos


def reasons(found):
    return {skipped.path: skipped.reason for skipped in found.skipped}


def test_photos_are_found_in_subfolders_in_a_fixed_order(tmp_path):
    for name in ("b/2.JPG", "b/1.jpeg", "a.png", "b/c/d.webp", "e.bmp", "f.tif", "g.TIFF", "h.gif"):
        noise(tmp_path / name)
    found = find_photos(tmp_path, "--novel")
    assert found.paths == ["a.png", "b/1.jpeg", "b/2.JPG", "b/c/d.webp", "e.bmp", "f.tif", "g.TIFF", "h.gif"]
    assert not found.skipped


@posix
@pytest.mark.parametrize("name", ["with space.png", "line\nbreak.png", "größe 日本 🦊.png", "a,b\"c'd.png", "-rf.png"])
def test_any_name_will_do(tmp_path, name):
    noise(tmp_path / name)
    assert find_photos(tmp_path, "--novel").paths == [name]


def test_a_name_that_is_not_unicode_will_do(tmp_path):
    noise(tmp_path / "x.png")
    try:
        (tmp_path / "x.png").rename(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe.png"))
    except OSError:
        pytest.skip("this file system has only unicode names")
    found = find_photos(tmp_path, "--novel")
    assert (tmp_path / found.paths[0]).exists()


def test_other_files_are_listed_and_hidden_ones_passed_over(tmp_path):
    for name in ("notes.txt", "film.MOV", "README", ".DS_Store", "._a.png", "Thumbs.db", ".git/x.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "empty.jpg").touch()
    found = find_photos(tmp_path, "--novel")
    assert found.paths == []
    assert set(reasons(found)) == {"notes.txt", "film.MOV", "README", "empty.jpg"}
    assert reasons(found)["empty.jpg"] == "the file is empty"
    assert ".mov" in reasons(found)["film.MOV"]


def test_what_phones_and_cameras_make_is_found(tmp_path, monkeypatch):
    photos, raws = ["IMG_1.HEIC", "b.heif", "c.avif"], ["d.DNG", "e.cr2", "f.CR3", "g.nef", "h.arw"]
    for name in [*photos, *raws]:
        (tmp_path / name).write_bytes(b"x")
    monkeypatch.setattr("medi.photos.folders.can_read_raw", lambda: True)
    assert find_photos(tmp_path, "--novel").paths == [*photos, *raws]
    monkeypatch.setattr("medi.photos.folders.can_read_raw", lambda: False)
    found = find_photos(tmp_path, "--novel")
    assert found.paths == photos
    assert reasons(found) == dict.fromkeys(raws, "raw photos need rawpy: pip install 'medi[raw]'")


def test_links_are_followed_but_never_in_a_circle(tmp_path):
    noise(tmp_path / "elsewhere" / "far.png")
    root = tmp_path / "novel"
    noise(root / "inside" / "near.png")
    (root / "inside" / "up").symlink_to(root)
    (root / "a link").symlink_to(tmp_path / "elsewhere")
    (root / "again").symlink_to(root / "inside")
    (root / "itself.png").symlink_to(root / "itself.png")
    (root / "gone.png").symlink_to(root / "nothing.png")
    found = find_photos(root, "--novel")
    assert found.paths == ["a link/far.png", "inside/near.png"]
    assert reasons(found)["again"] == reasons(found)["inside/up"] == "a link to a folder that was searched already"
    assert reasons(found)["gone.png"] == reasons(found)["itself.png"] == "a broken link"


def test_folders_that_all_link_to_each_other_take_no_time(tmp_path):
    folders = [tmp_path / str(i) for i in range(12)]
    for folder in folders:
        folder.mkdir()
    for folder in folders:
        for other in folders:
            (folder / f"to {other.name}").symlink_to(other)
    noise(folders[3] / "a.png")
    assert find_photos(tmp_path, "--novel").paths == ["3/a.png"]


def test_a_class_is_the_folder_right_under_the_known_one():
    assert class_of("cat/2019/a.jpg") == "cat"
    assert class_of("a.jpg") is None


def test_a_folder_that_is_none_is_named(tmp_path):
    with pytest.raises(InputError, match=r"--known .*nowhere"):
        find_photos(tmp_path / "nowhere", "--known")
    noise(tmp_path / "a.png")
    with pytest.raises(InputError, match="is a file"):
        find_photos(tmp_path / "a.png", "--known")
