// npm's socket.io-client against a server on the engine: node peer.cjs PACKAGES URL TRANSPORTS. Prints what it saw.
const path = require("path");
const { io } = require(path.join(process.argv[2], "socket.io-client"));
const url = process.argv[3];
const transports = process.argv[4].split(",");

const once = (socket, event) => new Promise((resolve) => socket.once(event, (...args) => resolve(args)));
const settled = (socket) => (socket.connected ? Promise.resolve() : once(socket, "connect"));

async function main() {
  const seen = {};
  const options = { transports, auth: { token: "123" }, reconnectionDelay: 10, reconnectionDelayMax: 50 };
  const socket = io(url, options);
  const auth = once(socket, "auth");
  await settled(socket);
  seen.auth = (await auth)[0];
  if (transports.length > 1) {
    if (socket.io.engine.transport.name !== "websocket") await once(socket.io.engine, "upgrade");
  }
  seen.transport = socket.io.engine.transport.name;
  const back = once(socket, "message-back");
  socket.emit("message", 1, "ü", { 3: [true] });
  seen.back = await back;
  seen.ack = await new Promise((resolve) => socket.emit("message-with-ack", 1, "2", (...args) => resolve(args)));
  seen.many = (
    await Promise.all(
      Array.from({ length: 200 }, (_, n) => new Promise((resolve) => socket.emit("message-with-ack", n, resolve)))
    )
  ).every((n, index) => n === index);
  const large = "x".repeat(300000);
  seen.large = (await new Promise((resolve) => socket.emit("message-with-ack", large, resolve))) === large;

  const custom = io(`${url}/custom`, options);
  const customAuth = once(custom, "auth");
  await settled(custom);
  seen.custom = (await customAuth)[0];
  seen.same = custom.io === socket.io;
  const nowhere = io(`${url}/nowhere`, options);
  seen.nowhere = (await once(nowhere, "connect_error"))[0].message;
  const left = once(custom, "disconnect");
  custom.emit("leave");
  seen.left = (await left)[0];

  const before = socket.id;
  const lost = once(socket, "disconnect");
  socket.emit("cut");
  seen.lost = (await lost)[0];
  await settled(socket);
  seen.again = socket.id !== before;
  seen.after = await new Promise((resolve) => socket.emit("message-with-ack", "after", resolve));
  for (const each of [socket, custom, nowhere]) each.disconnect();
  console.log(JSON.stringify(seen));
  process.exit(0);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
