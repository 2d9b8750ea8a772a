// A still of the camera. The picture goes the way of any photo; the camera is off as soon as the dialog closes.

const $ = (id) => document.getElementById(id);
const SECURE = "Browsers lend the camera only to pages of this machine (http://127.0.0.1 or localhost) or pages that come "
  + "over https. Take the photo with another program and choose its file instead.";
const REASONS = {
  NotAllowedError: "The camera was not allowed. Allow it for this page in the browser, or choose a file instead.",
  NotFoundError: "There is no camera here. Choose a file instead.",
  NotReadableError: "The camera is in use by another program. Close that, or choose a file instead.",
};
let stream = null;

/** Let the button open the camera; `choose` is given each photo that is taken. */
export function startCamera(choose) {
  const dialog = $("camera-view");
  const video = dialog.querySelector("video");
  $("camera").addEventListener("click", () => open(dialog, video));
  $("camera-close").addEventListener("click", () => dialog.close());
  $("camera-take").addEventListener("click", async () => {
    const photo = await still(video);
    dialog.close();
    if (photo) choose(photo);
  });
  dialog.addEventListener("close", stop);
  addEventListener("pagehide", stop);
}

async function open(dialog, video) {
  told("");
  $("camera-take").disabled = true;
  dialog.showModal();
  if (!navigator.mediaDevices?.getUserMedia) {
    told(SECURE);
    return;
  }
  try {
    const wish = { video: { width: { ideal: 1920 }, height: { ideal: 1080 }, facingMode: "environment" }, audio: false };
    const lent = await navigator.mediaDevices.getUserMedia(wish);
    stop();
    stream = lent;
    if (!dialog.open) {
      stop(); // closed while the browser asked
      return;
    }
    video.srcObject = stream;
    await video.play();
    $("camera-take").disabled = false;
    $("camera-take").focus();
  } catch (error) {
    told(REASONS[error.name] || `The camera cannot be used (${error.name}). Choose a file instead.`);
  }
}

function still(video) {
  if (!video.videoWidth) return Promise.resolve(null);
  const canvas = document.createElement("canvas");
  canvas.width = video.videoWidth;
  canvas.height = video.videoHeight;
  canvas.getContext("2d").drawImage(video, 0, 0);
  const name = `camera-${new Date().toISOString().slice(0, 19).replace(/[-:]/g, "").replace("T", "-")}.jpg`;
  return new Promise((resolve) => {
    canvas.toBlob((blob) => resolve(blob && new File([blob], name, { type: "image/jpeg" })), "image/jpeg", 0.92);
  });
}

function stop() {
  for (const track of stream?.getTracks() ?? []) track.stop();
  stream = null;
  $("camera-view").querySelector("video").srcObject = null;
}

function told(text) {
  $("camera-problem").textContent = text;
  $("camera-problem").hidden = !text;
}
