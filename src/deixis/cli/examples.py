"""What people type, by command: shown at the end of each command's help."""

from __future__ import annotations

EXAMPLES: dict[str, tuple[str, ...]] = {
    "caption": (
        "deixis caption photo.jpg",
        "deixis caption photos/ -o captions.jsonl",
        "deixis caption photo.jpg --html page.html --png",
    ),
    "video": ("deixis video clip.mp4 --every 5s --mp4 drawn.mp4",),
    "serve": ("deixis serve --open", "deixis serve --folder photos/"),
    "export": ("deixis export captions.jsonl -f coco -o boxes.json",),
    "export-model": ("deixis export-model lite -o lite-onnx --format onnx",),
    "ground": (
        'deixis ground photo.jpg "a man" "a red hat"',
        'deixis ground photo.jpg --sentence "A man in a red hat."',
    ),
    "search": (
        'deixis search photos/ "a dog on a sofa" --html found.html',
        'deixis search photos/ "a red hat" --top 5 --json',
    ),
    "label": ("deixis label my-photos -o labels.json --format labelstudio",),
    "review": ("deixis review labels.json --photos my-photos -o review.html",),
    "corrections": ("deixis corrections corrected.json --photos my-photos --draft labels.json",),
    "data": ("deixis data info my-photos", "deixis data show my-photos dog.jpg -o dog.png"),
    "regions": ("deixis regions extract my-photos -o regions/my-photos",),
    "text": ("deixis text prepare my-photos -o text/my-photos --class-threshold 5",),
    "average": ("deixis average lite runs/captioner -o both",),
    "bundle": ("deixis bundle runs/captioner runs/grounder -o mine --calibrate my-photos",),
    "train": (
        "deixis train grounding/own data.dataset=my-photos -o runs/grounder",
        "deixis train grounding/own data.dataset=my-photos -o runs/grounder --resume",
    ),
    "recipes": ("deixis recipes", "deixis recipes captioning/own"),
    "calibrate": ("deixis calibrate runs/grounder my-photos",),
    "evaluate": ("deixis evaluate lite my-photos -o eval/lite",),
    "score": ("deixis score captions.jsonl my-photos",),
    "compare": ("deixis compare eval/lite eval/mine",),
}
