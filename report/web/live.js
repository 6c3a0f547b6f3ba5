// Follows a run: changed panels come as server-sent events. Saving works when the run has ended too.
(() => {
  "use strict";
  const me = document.currentScript, state = document.getElementById("link-state"), save = document.getElementById("save");
  let version = +me.dataset.version, over = false, pause = 1000;
  const token = new URLSearchParams(location.search).get("token");
  const at = path => path + (token ? "?token=" + encodeURIComponent(token) : "");
  save.href = at("save");

  const take = ({id, html}) => {
    const panel = document.getElementById(id);
    if (!panel) return location.reload(); // another run has joined
    const open = [...panel.querySelectorAll("details")].map(d => d.open);
    const lists = [...panel.querySelectorAll(".list .wide, .wide")].map(e => [e.scrollLeft, e.scrollTop]);
    panel.innerHTML = html;
    panel.querySelectorAll("details").forEach((d, i) => { d.open = open[i] || false; });
    panel.querySelectorAll(".list .wide, .wide").forEach((e, i) => { if (lists[i]) [e.scrollLeft, e.scrollTop] = lists[i]; });
    window.sortAgain(panel);
  };

  // What the page is saved as when the run is over, and its server gone.
  const keep = async () => {
    try {
      const page = await (await fetch(at("save"))).blob();
      save.href = URL.createObjectURL(page);
    } catch (e) { /* the server has gone: what is shown is saved */ save.href = ""; }
  };
  save.addEventListener("click", () => {
    if (save.getAttribute("href")) return;
    const copy = document.documentElement.cloneNode(true);
    copy.querySelectorAll("script[data-version], .actions, #values").forEach(e => e.remove());
    save.href = URL.createObjectURL(new Blob(["<!DOCTYPE html>\n" + copy.outerHTML], {type: "text/html"}));
  });

  const follow = () => {
    const stream = new EventSource(at("stream") + (token ? "&" : "?") + "since=" + version);
    stream.addEventListener("open", () => { state.textContent = ""; pause = 1000; });
    stream.addEventListener("panel", e => take(JSON.parse(e.data)));
    stream.addEventListener("version", e => { version = +e.data; });
    stream.addEventListener("over", async () => {
      over = true;
      await keep(); // the server waits for as long as the stream is open
      await fetch(at("bye"), {method: "POST"}).catch(() => {});
      stream.close();
      state.textContent = "The run is over.";
    });
    stream.addEventListener("error", () => {
      stream.close();
      if (over) return;
      state.textContent = "The connection is lost.";
      pause = Math.min(2 * pause, 30000);
      setTimeout(follow, pause);
    });
  };
  follow();
})();
