// Browsers load no workers from the disk. There the search runs in a hidden frame, which talks as a worker does.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(url) {
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.append(this.frame)
      const inside = this.frame.contentWindow
      inside.postMessage = (data) => this.onmessage?.({ data }) // what the search says goes to the page
      const script = inside.document.createElement("script")
      this.ready = new Promise((done) => (script.onload = done))
      script.src = url
      inside.document.body.append(script)
    }

    postMessage(data) {
      const { contentWindow } = this.frame
      this.ready.then(() => contentWindow.dispatchEvent(new MessageEvent("message", { data })))
    }

    terminate() {
      this.frame.remove()
    }
  }
}
