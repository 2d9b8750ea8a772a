// What is dropped on the page or pasted into it: files are taken, addresses are refused with the way out.
import { Refused } from "./api.js";

/** Why an address is not fetched, and what to do. */
export function refusedAddress(address) {
  let host = "";
  try {
    host = ` (${new URL(address).host})`;
  } catch {
    // an address all the same, but not one with a host
  }
  return new Refused(0, `That is an address${host}, and nothing is fetched from addresses: neither this page nor its server `
    + "goes out to the network. Save the photo as a file and drop that here, or copy the picture itself (not its "
    + "address) and paste it.");
}

/** The first address of what was dropped or pasted, or an empty text. */
export function addressIn(data) {
  const lines = `${data?.getData("text/uri-list") || ""}\n${data?.getData("text/plain") || ""}`.split(/\s+/);
  return lines.find((line) => /^(https?|ftp|file|data):\S+$/i.test(line) || /^www\.\S+\.\S+$/i.test(line)) ?? "";
}

/** Listen to the whole page; `choose` takes a file, `problem` an error. */
export function listenToIncoming(choose, problem) {
  const take = (data) => {
    const [file] = data?.files ?? [];
    const address = file ? "" : addressIn(data);
    if (file) choose(file);
    else if (address) problem(refusedAddress(address));
    return Boolean(file || address);
  };
  document.addEventListener("paste", (event) => {
    if (event.target.closest?.("input, textarea") && !event.clipboardData?.files.length) return; // text for a field
    take(event.clipboardData);
  });
  let inside = 0;
  document.addEventListener("dragenter", () => {
    inside += 1;
    document.body.classList.add("dropping");
  });
  document.addEventListener("dragleave", () => {
    inside -= 1;
    if (inside <= 0) document.body.classList.remove("dropping");
  });
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    inside = 0;
    document.body.classList.remove("dropping");
    if (!take(event.dataTransfer)) {
      problem(new Refused(0, "There is no photo in what was dropped. Drop a file with a photo or a clip."));
    }
  });
}
