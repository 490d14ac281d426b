// SPDX-License-Identifier: Apache-2.0
// Perfetto's trace processor, a web worker, on standard input and output: node engine.js FOLDER_OF_THE_VIEWER
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const folder = process.argv[2];

// The worker fetches its WebAssembly with this, and nothing else.
class XMLHttpRequest {
  open(method, address) {
    this.file = path.join(folder, path.basename(address));
  }
  send() {
    this.response = fs.readFileSync(this.file);
  }
}

const complaints = { log: console.error, warn: console.error, error: console.error };
const worker = vm.createContext({
  XMLHttpRequest, TextDecoder, URL, performance, crypto, setTimeout,
  console: complaints, location: { href: "http://localhost/" }, WorkerGlobalScope: Object,
});
worker.self = worker;
vm.runInContext(fs.readFileSync(path.join(folder, "engine_bundle.js"), "utf8"), worker);

const port = { postMessage: (reply) => process.stdout.write(Buffer.from(reply)) };
worker.onmessage({ data: port });
const WorkersBytes = vm.runInContext("Uint8Array", worker);
process.stdin.on("data", (bytes) => port.onmessage({ data: new WorkersBytes(bytes) }));
