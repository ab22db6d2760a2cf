import { once } from "node:events";
import { createServer, request as httpRequest } from "node:http";
import { connect, type Socket } from "node:net";

export interface ConnectProxy extends AsyncDisposable {
  /** With the user and password that it asks for. */
  url: string;
  /** Whom it connected to: `localhost:443`. */
  tunnels: string[];
  /** What it was asked without a tunnel: `GET http://host/path`. */
  plain: string[];
  /** Everything that went through its tunnels, as it was on the wire. */
  carried(): string;
  /** From now on it answers so; 200 connects. */
  answerWith(status: number): void;
  /** Cuts every tunnel and listens no more. */
  kill(): Promise<void>;
  /** After `kill`, on the same port. */
  start(): Promise<void>;
}

/** A proxy as companies have them: CONNECT for tunnels, whole addresses for plain HTTP, and a password. */
export async function connectProxy(): Promise<ConnectProxy> {
  const [user, password] = ["gatehouse", "p%w-of-proxy"];
  const login = `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;
  const tunnels: string[] = [];
  const plain: string[] = [];
  const sockets = new Set<Socket>();
  let carried = "";
  let status = 200;
  const server = createServer((request, response) => {
    plain.push(`${request.method} ${request.url}`);
    if (request.headers["proxy-authorization"] !== login) return response.writeHead(407).end();
    const { "proxy-authorization": _, ...headers } = request.headers;
    const onward = httpRequest(request.url ?? "", { method: request.method ?? "GET", headers });
    onward.on("response", (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    onward.on("error", () => response.writeHead(502).end());
    return request.pipe(onward);
  });
  server.on("connect", (request, socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    const refusal = request.headers["proxy-authorization"] === login ? status : 407;
    if (refusal !== 200) return socket.end(`HTTP/1.1 ${refusal} No\r\n\r\n`);
    tunnels.push(request.url ?? "");
    const [host, port] = (request.url ?? "").split(":");
    const onward = connect(Number(port), host === "localhost" ? "127.0.0.1" : host);
    sockets.add(onward);
    onward.on("error", () => socket.destroy());
    onward.on("connect", () => {
      socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
      socket.on("data", (chunk: Buffer) => (carried += chunk.toString("latin1")));
      socket.pipe(onward).pipe(socket);
    });
    return undefined;
  });
  const start = async (on: number) => {
    server.listen(on, "127.0.0.1");
    await once(server, "listening");
  };
  const kill = async () => {
    if (!server.listening) return;
    const closed = once(server, "close");
    for (const socket of sockets) socket.destroy();
    sockets.clear();
    server.closeAllConnections();
    server.close();
    await closed;
  };
  await start(0);
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    url: `http://${user}:${encodeURIComponent(password)}@127.0.0.1:${port}`,
    tunnels,
    plain,
    carried: () => carried,
    answerWith: (next) => void (status = next),
    kill,
    start: () => start(port),
    [Symbol.asyncDispose]: kill,
  };
}
