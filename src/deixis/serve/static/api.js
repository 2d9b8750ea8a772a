// Talking to the server. Everything it says ends up in textContent, never in markup.

let token = "";
try {
  token = new URLSearchParams(location.hash.slice(1)).get("token") || sessionStorage.getItem("deixis-token") || "";
  if (location.hash.includes("token=")) history.replaceState(null, "", location.pathname);
  if (token) sessionStorage.setItem("deixis-token", token);
} catch {
  token = ""; // storage is switched off: the token is asked for instead
}

/** A refusal of the server, with its message for people. */
export class Refused extends Error {
  constructor(status, message, retryAfter) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

export async function ask(path, { fields = null, signal = undefined } = {}) {
  for (;;) {
    const headers = token ? { Authorization: `Bearer ${token}` } : {};
    let answer;
    try {
      answer = await fetch(path, { method: fields ? "POST" : "GET", body: fields ? form(fields) : null, headers, signal });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Refused(0, "The server cannot be reached. Is it still running?");
    }
    if (answer.ok) return answer;
    if (answer.status === 401 && (await askForToken())) continue;
    throw await refusal(answer);
  }
}

async function refusal(answer) {
  let message = `The server answered with status ${answer.status}.`;
  try {
    message = (await answer.json()).error.message;
  } catch {
    // not our JSON: a proxy stands between
  }
  return new Refused(answer.status, message, Number(answer.headers.get("Retry-After")) || 0);
}

function form(fields) {
  const data = new FormData();
  for (const [name, value] of Object.entries(fields)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one instanceof Blob) data.append(name, one, one.name || "pasted");
      else if (one !== null && one !== undefined) data.append(name, String(one));
    }
  }
  return data;
}

function askForToken() {
  const dialog = document.getElementById("token");
  const input = document.getElementById("secret");
  if (dialog.open) return Promise.resolve(false);
  input.value = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      token = input.value.trim();
      try {
        sessionStorage.setItem("deixis-token", token);
      } catch {
        // kept for this page only
      }
      resolve(Boolean(token));
    }, { once: true });
  });
}

/** Some browsers do not know the kind of some clips: then their names tell. */
export function isClip(file) {
  return file.type.startsWith("video/") || (!file.type && /\.(mp4|m4v|mov|webm|mkv|avi)$/i.test(file.name));
}

/** Let the browser save something under a name. */
export function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
