"""Models of timm, open_clip and transformers make of a photo what their own libraries make of it.

The models are real ones without trained weights; nothing is downloaded. `make test-encoders` installs the libraries.
"""

import io
import json
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from unittest.mock import MagicMock

import numpy as np
import pytest
import torch
from people import discover, facts_of
from PIL import Image
from safetensors.torch import load_file, save_file
from sklearn.datasets import load_sample_image

from medi.core.errors import InputError
from medi.hubs import downloads, encoders
from medi.hubs.encoders import Origin, open_clip_encoder, timm_encoder, timm_network
from medi.photos.decode import decoding, read_photo
from medi.photos.encoders import load_encoder

CPU = "cpu"
REASON = "an extra that is not installed: make test-encoders"
FILTERS_DIFFER = 0.03
"""Photos are cut out and resized in one step here, in two steps by the libraries: of the largest feature."""
SAME = 1e-5
"""The same where nothing is resized."""

ViT = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}


@pytest.fixture(scope="module")
def photo():
    """A palace by day, of 480 x 320 pixels: the libraries round sizes and places of cuts, here they come out even."""
    return Image.fromarray(load_sample_image("china.jpg")).resize((480, 320), Image.Resampling.LANCZOS)


def square(photo, side):
    return photo.resize((side, side), Image.Resampling.BICUBIC)


def shown(cut, image):
    """The pixels that an encoder gets of a photo in a file."""
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    buffer.seek(0)
    with decoding():
        return read_photo(buffer, cut).pixels


def ours(encoder, image):
    """What the encoder makes of a photo in a file."""
    return torch.from_numpy(encoder.encode(shown(encoder.cut, image)[None]))[0]


def differ(a, b):
    """The largest difference, of the largest feature."""
    a, b = (torch.as_tensor(features) for features in (a, b))
    return float((a - b).abs().max() / b.abs().max())


def origin(library, model):
    packages = {"open_clip": "open_clip_torch"}
    return Origin(f"{library}:{model}", library, model, packages.get(library, library), "nowhere", "none")


@pytest.fixture
def offline(monkeypatch, tmp_path):
    """A hub that is out of reach, and nothing of it kept."""
    constants = pytest.importorskip("huggingface_hub.constants", reason=REASON)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))


@pytest.fixture
def on_hub(monkeypatch, tmp_path):
    """Let a network's weights be what the hub answers with."""

    def serve(network):
        file = tmp_path / "model.safetensors"
        save_file({name: tensor.contiguous() for name, tensor in network.state_dict().items()}, file)
        monkeypatch.setattr(encoders, "weights_file", lambda name, hub, wanted: file)
        monkeypatch.setattr(encoders, "card_licence", lambda card: "mit")

    return serve


# All libraries


@pytest.mark.parametrize("name", ["timm:vit_tiny", "open_clip:ViT-B-32/openai", "transformers:facebook/dinov2-small"])
def test_a_library_that_is_not_installed_is_named_with_its_extra(name, monkeypatch):
    library = name.partition(":")[0]
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(InputError, match=rf"needs {library}: pip install 'medi\[{library}\]'"):
        load_encoder(name, CPU)


def test_a_library_that_does_not_fit_torch_says_so(monkeypatch):
    def broken(library):
        raise RuntimeError("operator torchvision::nms does not exist")

    monkeypatch.setattr(encoders, "import_module", broken)
    with pytest.raises(InputError, match=r"nms does not exist.*torch and torchvision of one build"):
        load_encoder("timm:vit", CPU)


@pytest.mark.parametrize(
    "name", ["timm:resnet10t.c3_in1k", "open_clip:ViT-B-32/openai", "transformers:facebook/dinov2-small"]
)
def test_a_download_that_fails_is_one_line(name, offline):
    pytest.importorskip(name.partition(":")[0], reason=REASON)
    with pytest.raises(InputError, match=rf"{re.escape(name)} could not be had .*check the network") as fault:
        load_encoder(name, CPU)
    assert "\n" not in str(fault.value)


def test_only_safetensors_are_asked_for(monkeypatch):
    library = pytest.importorskip("huggingface_hub", reason=REASON)
    asked = []

    def no_such_file(repository, file, local_files_only=False):
        if local_files_only:
            raise library.errors.LocalEntryNotFoundError("nothing is kept")
        asked.append(file)
        raise library.errors.EntryNotFoundError(f"404 {file}")

    monkeypatch.setattr(library, "hf_hub_download", no_such_file)
    for file in ("pytorch_model.bin", "open_clip_pytorch_model.bin", "weights.bin"):
        with pytest.raises(InputError, match="owner/model has no weights as safetensors, and no others are read"):
            downloads.weights_file("timm:model", "owner/model", file)
    assert asked == ["model.safetensors", "open_clip_model.safetensors", "weights.safetensors"]


# timm


@pytest.mark.parametrize(
    ("model", "size"),
    [("vit_tiny_patch16_224", 80), ("vit_small_patch14_dinov2", 56), ("resnet10t", 112), ("convnext_atto", None)],
)
def test_timm_agrees_with_its_own_preprocessing(model, size, photo):
    timm = pytest.importorskip("timm", reason=REASON)
    torch.manual_seed(0)
    network = timm_network(model, size, pretrained=False).eval()
    config = timm.data.resolve_model_data_config(network, {"input_size": (3, size, size)} if size else None)
    transform = timm.data.create_transform(**config)
    image = transform(photo)[None]
    with torch.inference_mode():
        theirs = network(image)[0].clone()
    encoder = timm_encoder(origin("timm", model), network, size, CPU)
    assert encoder.cut.side == config["input_size"][-1]
    assert encoder.shape == theirs.shape
    assert differ(ours(encoder, photo), theirs) < FILTERS_DIFFER
    mean, std = (torch.tensor(config[name])[:, None, None] for name in ("mean", "std"))
    pixels = 255 * (image[0] * std + mean)
    assert (torch.from_numpy(shown(encoder.cut, photo)) - pixels).abs().mean() < 2  # of 255
    if encoder.cut.fraction < 1:
        uncut = replace(encoder.cut, fraction=1.0)
        assert (torch.from_numpy(shown(uncut, photo)) - pixels).abs().mean() > 10  # so a wrong cut would be noticed


def test_timm_loads_weights_at_another_size(on_hub, photo):
    timm = pytest.importorskip("timm", reason=REASON)
    torch.manual_seed(0)
    whole = timm.create_model("vit_tiny_patch16_224", pretrained=False)
    on_hub(whole)
    encoder = load_encoder("timm:vit_tiny_patch16_224.augreg_in21k_ft_in1k@64", CPU)
    small = timm.create_model("vit_tiny_patch16_224", pretrained=False, img_size=64, num_classes=0).eval()
    weights = timm.models.vision_transformer.checkpoint_filter_fn(whole.state_dict(), small)
    small.load_state_dict({name: weights[name] for name in small.state_dict()})
    pixels = torch.from_numpy(np.asarray(square(photo, 64)).copy()).permute(2, 0, 1)[None]
    with torch.inference_mode():
        theirs = small((pixels / 255 - 0.5) / 0.5)
    assert differ(encoder.encode(pixels.numpy()), theirs) < SAME
    assert encoder.licence == "apache-2.0"
    assert encoder.source == "https://huggingface.co/timm/vit_tiny_patch16_224.augreg_in21k_ft_in1k"
    assert encoder.engine == "torch"
    assert encoder.cut.side == 64


def test_a_size_that_a_model_cannot_take_is_refused(on_hub):
    timm = pytest.importorskip("timm", reason=REASON)
    on_hub(timm.create_model("vit_tiny_patch16_224", pretrained=False))
    with pytest.raises(InputError, match="multiples of 16: use @224"):
        load_encoder("timm:vit_tiny_patch16_224@225", CPU)
    for size in ("big", "0", "-3", "99999", ""):
        with pytest.raises(InputError, match="number of pixels"):
            load_encoder(f"timm:vit_tiny_patch16_224@{size}", CPU)
    on_hub(timm.create_model("gmlp_s16_224", pretrained=False, num_classes=10))  # its weights are for one size
    with pytest.raises(
        InputError, match=r"gmlp_s16_224@64 cannot take images of 64 pixels .*: use another size"
    ) as fault:
        load_encoder("timm:gmlp_s16_224@64", CPU)
    assert "\n" not in str(fault.value)


def test_unknown_models_of_timm_are_answered_with_the_nearest():
    pytest.importorskip("timm", reason=REASON)
    with pytest.raises(InputError, match=r"did you mean 'vit_small_patch14_dinov2\.lvd142m'"):
        load_encoder("timm:vit_small_patch14_dinov2.lvd142", CPU)
    with pytest.raises(InputError, match=r"there is .*resnet10t"):
        load_encoder("timm:resnet10tt", CPU)


def test_identities_tell_weights_and_sizes_apart():
    pytest.importorskip("timm", reason=REASON)

    def identity(seed, size):
        torch.manual_seed(seed)
        network = timm_network("vit_tiny_patch16_224", size, pretrained=False)
        return timm_encoder(origin("timm", "vit_tiny_patch16_224"), network, size, CPU).identity

    assert identity(0, 32) == identity(0, 32)
    assert len({identity(0, 32), identity(1, 32), identity(0, 48)}) == 3
    assert re.fullmatch(r"timm-vit_tiny_patch16_224-[0-9a-f]{12}-32", identity(0, 32))


# open_clip


TINY = {
    "embed_dim": 16,
    "vision_cfg": {"image_size": 32, "layers": 2, "width": 32, "head_width": 16, "patch_size": 8},
    "text_cfg": {"context_length": 8, "vocab_size": 64, "width": 16, "heads": 2, "layers": 1},
}
MEAN, STD = (0.4, 0.5, 0.6), (0.2, 0.25, 0.3)


@pytest.fixture(params=["shortest", "squash"])
def tiny_clip(request, tmp_path, monkeypatch):
    """open_clip with a tiny model of its own."""
    open_clip = pytest.importorskip("open_clip", reason=REASON)
    config = tmp_path / "medi-tiny.json"
    config.write_text(json.dumps(TINY))
    open_clip.add_model_config(config)
    facts = {"hf_hub": "owner/tiny/", "url": "", "mean": MEAN, "std": STD, "interpolation": "bilinear"}
    tags = {"noise": facts | {"resize_mode": request.param, "quick_gelu": True}}
    monkeypatch.setitem(sys.modules["open_clip.pretrained"]._PRETRAINED, "medi-tiny", tags)
    return open_clip, request.param


def test_open_clip_agrees_with_its_own_preprocessing(tiny_clip, on_hub, photo):
    open_clip, resizing = tiny_clip
    torch.manual_seed(0)
    model = open_clip.create_model("medi-tiny", force_quick_gelu=True).eval()
    on_hub(model)
    encoder = load_encoder("open_clip:medi-tiny/noise", CPU)
    prepare = open_clip.image_transform(
        32, is_train=False, mean=MEAN, std=STD, interpolation="bilinear", resize_mode=resizing
    )
    for image, tolerance in ((square(photo, 32), SAME), (square(photo, 300), FILTERS_DIFFER), (photo, FILTERS_DIFFER)):
        with torch.inference_mode():
            theirs = model.encode_image(prepare(image)[None])[0]
        assert differ(ours(encoder, image), theirs) < tolerance
    assert encoder.shape == (TINY["embed_dim"],)
    assert (encoder.source, encoder.licence) == ("https://huggingface.co/owner/tiny", "mit")
    assert re.fullmatch(r"open_clip-medi-tiny_noise-[0-9a-f]{12}-32", encoder.identity)


def test_unknown_models_of_open_clip_are_answered_with_the_nearest():
    pytest.importorskip("open_clip", reason=REASON)
    with pytest.raises(InputError, match="did you mean 'ViT-B-32/laion2b_s34b_b79k'"):
        load_encoder("open_clip:ViT-B-32/laion2b_s34b_b79", CPU)
    with pytest.raises(InputError, match="ViT-B-32/openai"):
        load_encoder("open_clip:ViT-B-32", CPU)


def test_a_model_of_open_clip_with_captions_serves_too(photo):
    open_clip = pytest.importorskip("open_clip", reason=REASON)
    from open_clip.coca_model import CoCa

    torch.manual_seed(0)
    text = {"context_length": 8, "vocab_size": 64, "width": 32, "heads": 2, "layers": 1, "embed_cls": True}
    vision = TINY["vision_cfg"] | {"attentional_pool": True, "output_tokens": True}
    captions = {"context_length": 8, "vocab_size": 64, "width": 32, "heads": 2, "layers": 1}
    model = CoCa(16, multimodal_cfg=captions, text_cfg=text | {"output_tokens": True}, vision_cfg=vision).eval()
    facts = {"size": 32, "mean": MEAN, "std": STD, "interpolation": "bicubic"}
    open_clip.model.set_model_preprocess_cfg(model, facts)
    encoder = open_clip_encoder(origin("open_clip", "tiny-coca/noise"), model, CPU)
    prepare = open_clip.image_transform(32, is_train=False, mean=MEAN, std=STD)
    with torch.inference_mode():
        theirs = model.encode_image(prepare(square(photo, 32))[None], normalize=False)[0]
    assert differ(ours(encoder, square(photo, 32)), theirs) < SAME


# transformers


def saved(folder, model, processor):
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


@pytest.fixture
def tiny_vit(tmp_path):
    """A folder with a tiny model, and the model."""
    t = pytest.importorskip("transformers", reason=REASON)
    torch.manual_seed(0)
    model = t.ViTModel(t.ViTConfig(**ViT, image_size=32, patch_size=8))
    return saved(tmp_path / "vit", model, t.ViTImageProcessor(size={"height": 32, "width": 32})), model


@pytest.fixture(params=["vit", "dinov2", "clip tower", "clip", "siglip", "resnet", "convnext"])
def tower(request, tmp_path):
    """A folder with a tiny model of a kind, and its image tower."""
    t = pytest.importorskip("transformers", reason=REASON)
    torch.manual_seed(0)
    sides = {"image_size": 32, "patch_size": 8}
    cropped = {"size": {"shortest_edge": 40}, "crop_size": {"height": 32, "width": 32}}
    whole = {"size": {"height": 32, "width": 32}}
    if request.param == "vit":
        model, processor = t.ViTModel(t.ViTConfig(**ViT, **sides)), t.ViTImageProcessor(**whole)
    elif request.param == "dinov2":
        model, processor = t.Dinov2Model(t.Dinov2Config(**ViT | sides)), t.BitImageProcessor(**cropped)
    elif request.param == "clip tower":
        model, processor = t.CLIPVisionModel(t.CLIPVisionConfig(**ViT, **sides)), t.CLIPImageProcessor(**cropped)
    elif request.param == "clip":
        ends = {"vocab_size": 9, "bos_token_id": 1, "eos_token_id": 2}
        config = t.CLIPConfig(text_config=ViT | ends, vision_config=ViT | sides, projection_dim=16)
        model, processor = t.CLIPModel(config), t.CLIPImageProcessor(**cropped)
    elif request.param == "siglip":
        model, processor = t.SiglipVisionModel(t.SiglipVisionConfig(**ViT, **sides)), t.SiglipImageProcessor(**whole)
    else:
        widths = {"depths": [1, 1, 1, 1], "hidden_sizes": [8, 8, 16, 16]}
        kind = "ResNet" if request.param == "resnet" else "ConvNext"
        more = {"embedding_size": 8} if request.param == "resnet" else {}
        model = getattr(t, f"{kind}Model")(getattr(t, f"{kind}Config")(**widths, **more))
        processor = t.ConvNextImageProcessor(size={"shortest_edge": 32}, crop_pct=0.8)
    return saved(tmp_path / "model", model, processor)


def test_transformers_agrees_with_its_own_preprocessing(tower, photo):
    t = pytest.importorskip("transformers", reason=REASON)
    encoder = load_encoder(f"transformers:{tower}", CPU)
    processor, model = t.AutoImageProcessor.from_pretrained(tower), t.AutoModel.from_pretrained(tower).eval()
    network = getattr(model, "vision_model", model)
    whole = dict(processor.size).get("shortest_edge") is None
    for image in (square(photo, 300), photo, *([square(photo, 32)] if whole else [])):
        with torch.inference_mode():
            theirs = network(**processor(images=image, return_tensors="pt")).pooler_output.flatten()
        same = image.size == (32, 32)
        assert differ(ours(encoder, image), theirs) < (SAME if same else FILTERS_DIFFER)
    assert encoder.cut.side == 32
    assert encoder.shape == theirs.shape
    assert re.fullmatch(r"transformers-model-[0-9a-f]{12}-32", encoder.identity)
    assert encoder.source == str(tower.resolve())
    assert encoder.licence == "not stated"


def test_threads_may_share_a_model_of_transformers(tower):
    encoder = load_encoder(f"transformers:{tower}", CPU)
    images = np.random.default_rng(0).integers(0, 256, (16, 3, 32, 32), dtype=np.uint8)
    whole = encoder.encode(images)
    with ThreadPoolExecutor(4) as threads:
        parts = np.concatenate(list(threads.map(encoder.encode, np.split(images, 16))))
    assert differ(parts, whole) < SAME


def test_a_classifier_without_a_pooler_gives_the_mean_of_its_patches(tmp_path, photo):
    t = pytest.importorskip("transformers", reason=REASON)
    config = t.ViTConfig(**ViT, image_size=32, patch_size=8)
    processor = t.ViTImageProcessor(size={"height": 32, "width": 32})
    classifier = t.ViTForImageClassification(config).eval()
    folder = saved(tmp_path / "classifier", classifier, processor)
    encoder = load_encoder(f"transformers:{folder}", CPU)
    image = square(photo, 32)
    with torch.inference_mode():
        tokens = classifier.vit(**processor(images=image, return_tensors="pt")).last_hidden_state[0]
    assert differ(ours(encoder, image), tokens[1:].mean(0)) < SAME
    # A pooler that is drawn anew at each start would change both.
    again = load_encoder(f"transformers:{folder}", CPU)
    assert again.identity == encoder.identity
    assert torch.equal(ours(again, image), ours(encoder, image))


def test_a_model_card_states_the_licence(tiny_vit):
    folder, _ = tiny_vit
    (folder / "README.md").write_text("---\nlicense: apache-2.0\n---\n# A model\n")
    encoder = load_encoder(f"transformers:{folder}", CPU)
    assert encoder.licence == "apache-2.0"
    assert encoder.describe().endswith(f"run by torch; weights from {folder.resolve()}, licence: apache-2.0")
    (folder / "README.md").write_text("---\nlicense: other\nlicense_name: own-terms\n---\n# A model\n")
    assert load_encoder(f"transformers:{folder}", CPU).licence == "own-terms"


def test_pickled_weights_are_not_read(tiny_vit):
    folder, model = tiny_vit
    (folder / "model.safetensors").unlink()
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    with pytest.raises(InputError, match="no weights as safetensors, and no others are read"):
        load_encoder(f"transformers:{folder}", CPU)


def test_code_beside_a_model_is_not_run(tmp_path, tiny_vit):
    folder, _ = tiny_vit
    config = json.loads((folder / "config.json").read_text())
    theirs = {"AutoConfig": "own.Own", "AutoModel": "own.Own", "AutoImageProcessor": "own.Own"}
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "own", "auto_map": theirs}))
    (folder / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Own: pass\n")
    with pytest.raises(InputError, match="cannot be used") as fault:
        load_encoder(f"transformers:{folder}", CPU)
    assert not (tmp_path / "ran").exists()
    assert "\n" not in str(fault.value)


def test_a_model_that_is_not_of_images_is_refused(tmp_path):
    t = pytest.importorskip("transformers", reason=REASON)
    t.BertModel(t.BertConfig(**ViT, vocab_size=9)).save_pretrained(tmp_path / "text")
    with pytest.raises(InputError, match="cannot be used") as fault:
        load_encoder(f"transformers:{tmp_path / 'text'}", CPU)
    assert "\n" not in str(fault.value)


def test_weights_that_lack_a_part_are_refused(tiny_vit):
    folder, _ = tiny_vit
    weights = load_file(folder / "model.safetensors")
    del weights["layernorm.bias"]
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(InputError, match=r"lacks weights \(layernorm.bias"):
        load_encoder(f"transformers:{folder}", CPU)


def test_a_name_that_the_hub_does_not_have_is_answered_with_the_nearest(monkeypatch):
    library = pytest.importorskip("huggingface_hub", reason=REASON)
    pytest.importorskip("transformers", reason=REASON)

    def nothing(repository, file, local_files_only=False):
        raise library.errors.RepositoryNotFoundError("401", response=MagicMock())

    known = [library.ModelInfo(id=name) for name in ("facebook/dinov2-small", "facebook/dinov2-base", "google/bit-50")]
    monkeypatch.setattr(library, "hf_hub_download", nothing)
    monkeypatch.setattr(library, "list_models", lambda **asked: iter(known))
    with pytest.raises(InputError, match="no model 'facebook/dinov2-smal': did you mean facebook/dinov2-small or"):
        load_encoder("transformers:facebook/dinov2-smal", CPU)


# The commands


def test_discover_and_assign_tell_whose_weights_they_use(folders, medi_, tiny_vit):
    (folder, _), out = tiny_vit, folders / "out"
    (folder / "README.md").write_text("---\nlicense: bsd-3-clause\n---\n# A model\n")
    words = ("--encoder", f"transformers:{folder}", "--method", "kmeans", "--classes", "2", "--verbose")
    said = f"run by torch; weights from {folder.resolve()}, licence: bsd-3-clause"
    assert said in medi_(*discover(folders, *words)).err
    facts = facts_of(folders)
    assert facts["encoder"]["licence"] == "bsd-3-clause"
    assert facts["encoder"]["source"] == str(folder.resolve())
    assert facts["encoder"]["engine"] == "torch"
    assert "transformers" in facts["versions"]
    assert "bsd-3-clause" in (out / "report.html").read_text()
    words = ("assign", "--model", out / "model", "--images", folders / "novel", "--out", folders / "new.csv")
    assert said in medi_(*words, "--verbose").err
    again = medi_(*words, "--force")
    assert (again.code, said in again.err) == (0, False)
