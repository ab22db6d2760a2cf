import { once } from "node:events";
import { createServer, connect } from "node:net";
import { Writable } from "node:stream";
import { expect, it } from "vitest";
import { createOutput } from "../../src/log/output.ts";
import { until } from "../support/until.ts";

it("lines that a stream doesn't take are counted, and it is known since when", async () => {
  const stream = new Writable({
    autoDestroy: false,
    write: (_line, _encoding, done) => done(new Error("ENOSPC")),
  });
  stream.on("error", () => undefined);
  const output = createOutput(stream);
  output.write("one\n");
  output.write("two\n");
  await until(output.loss).toEqual({ lines: 2, since: expect.any(Number) });
});

it("a reader that has gone loses lines, and ends nothing", async () => {
  const server = createServer((socket) => socket.destroy()).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => undefined);
  await once(socket, "close");
  const output = createOutput(socket);
  output.write("one\n");
  await until(() => output.loss().lines).toBe(1);
  server.close();
});

it("a reader that has stopped reading loses lines, and fills no memory", () => {
  const stream = new Writable({ write: () => undefined });
  const output = createOutput(stream);
  for (let n = 0; n < 100; n++) output.write("x".repeat(100_000));
  expect(output.loss()).toEqual({ lines: expect.any(Number), since: expect.any(Number) });
  expect(output.loss().lines).toBeGreaterThan(50);
  expect(stream.writableLength).toBeLessThan(5_000_000);
});
