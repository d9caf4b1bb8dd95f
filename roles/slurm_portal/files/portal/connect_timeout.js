// Loaded before the proxy: a node that has died answers nothing, and the kernel would go on trying for two minutes.
// The time limits of the proxy itself are for answers, and some of a notebook's take that long.
"use strict";
const net = require("net");
const SECONDS = 8;
const connect = net.Socket.prototype.connect;
net.Socket.prototype.connect = function (...words) {
  const timer = setTimeout(() => {
    if (this.connecting) { this.destroy(Object.assign(new Error("connect ETIMEDOUT"), { code: "ETIMEDOUT" })); }
  }, SECONDS * 1000);
  timer.unref();
  this.once("connect", () => clearTimeout(timer));
  this.once("close", () => clearTimeout(timer));
  return connect.apply(this, words);
};
