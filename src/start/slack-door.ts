import type { IncomingMessage, ServerResponse } from "node:http";
import type { Log } from "../log/log.ts";
import { startWebServer } from "./web-server.ts";

interface SlackDoorOptions {
  port: number;
  /** Default: all interfaces, because Slack comes from outside. */
  host?: string | undefined;
  log: Log;
  /** False for what Slack never asks for. */
  route(request: IncomingMessage, response: ServerResponse): boolean;
}

const mostIdle = 256;

/** The only port that is open to the world, over HTTP: it knows Slack's path, and nothing of this process. */
export function startSlackDoor({ route, ...options }: SlackDoorOptions) {
  return startWebServer({ ...options, mostIdle }, (request, response) => {
    if (route(request, response)) return;
    response.writeHead(404, { connection: "close" });
    response.end();
  });
}
