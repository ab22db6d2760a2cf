import { UserError } from "../errors.ts";
import { isLoopbackHost, isNeverReached, isPrivateHost, type Reach } from "./reach.ts";

export interface BaseAddress {
  origin: string;
  /** Path of the base URL without a trailing slash; `/v1/…` is appended to it. */
  prefix: string;
  reach: Reach;
}

/**
 * Takes the configured base URL apart. Plain http is only for hosts that are loopback or private by their own name,
 * because the key would travel in clear text. Throws UserError; the text never repeats the URL (it may hold a password).
 */
export function parseBaseUrl(baseUrl: string, allowPrivate: boolean): BaseAddress {
  const url = URL.parse(baseUrl);
  if (!url || (url.protocol !== "https:" && url.protocol !== "http:")) {
    throw new UserError(
      "The compute service's base URL is not an http(s) address",
      "For example https://compute.example.com",
    );
  }
  if (url.username !== "" || url.password !== "") {
    throw new UserError(
      "The compute service's base URL holds a user name or password",
      "The key belongs in COMPUTE_API_KEY",
    );
  }
  if (url.search !== "" || url.hash !== "") {
    throw new UserError(
      "The compute service's base URL has a query or a fragment",
      "Paths are appended to it: leave them out",
    );
  }
  const host = url.hostname.replace(/^\[|\]$/g, "");
  if (isNeverReached(host)) {
    throw new UserError("The compute service's base URL names a link-local or unusable address");
  }
  const reach: Reach = isLoopbackHost(host)
    ? "loopback"
    : allowPrivate || isPrivateHost(host)
      ? "private"
      : "public";
  if (url.protocol === "http:" && reach === "public") {
    throw new UserError(
      "The compute service's base URL must be https",
      "Plain http would show the key to the network",
    );
  }
  return { origin: url.origin, prefix: url.pathname.replace(/\/+$/, ""), reach };
}

/** Letters, digits and `._:~-`, beginning with a letter, digit or `_`: nothing that means something in a path. */
const idPattern = /^[A-Za-z0-9_][A-Za-z0-9._:~-]{0,199}$/;

export function isId(value: string): boolean {
  return idPattern.test(value);
}

/** A snapshot's id travels in a body, so any visible ASCII will do. */
export function checkSnapshotId(value: string): string {
  if (/^[\x21-\x7e]{1,200}$/.test(value)) return value;
  throw new UserError(
    "That can't be the id of a snapshot",
    "Ids have no spaces and at most 200 characters",
  );
}

const nouns: Record<string, string> = { vm_id: "VM", project_id: "project" };

/** Fills a path template: `/v1/vms/{vm_id}` and `{ vm_id }`. Throws UserError for an id that can't be one. */
export function fillPath(template: string, ids: Readonly<Record<string, string>>): string {
  return template.replaceAll(/\{(\w+)\}/g, (_, key: string) => {
    const id = ids[key];
    if (typeof id !== "string" || !isId(id)) {
      throw new UserError(
        `That can't be the id of a ${nouns[key] ?? "resource"}`,
        "Ids are letters, digits and . _ : ~ - only, at most 200 characters",
      );
    }
    return encodeURIComponent(id);
  });
}

/** Query parameters that are set, as `?a=b`, or nothing. */
export function renderQuery(
  query: Readonly<Record<string, string | number | undefined>> = {},
): string {
  const params = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (value !== undefined) params.set(key, String(value));
  }
  return params.size === 0 ? "" : "?".concat(params.toString());
}
