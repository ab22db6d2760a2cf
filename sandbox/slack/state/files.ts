import { randomBytes } from "node:crypto";
import type { Fields } from "../fields.ts";
import type { SeenFile } from "../seen.ts";
import type { StoredFile } from "./records.ts";
import type { Workspace } from "./workspace.ts";

const mimetypes: Record<string, string> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  svg: "image/svg+xml",
  csv: "text/csv",
  json: "application/json",
  txt: "text/plain",
  md: "text/markdown",
  pdf: "application/pdf",
};

const extension = (name: string) => /\.([a-z0-9]+)$/i.exec(name)?.[1]?.toLowerCase() ?? "";

export function announceFile(
  workspace: Workspace,
  spec: { name: string; size: number; altText: string; userId: string },
): StoredFile {
  const file: StoredFile = {
    id: workspace.newId("F"),
    name: spec.name,
    title: spec.name,
    altText: spec.altText,
    mimetype: mimetypes[extension(spec.name)] ?? "application/octet-stream",
    size: spec.size,
    bytes: undefined,
    userId: spec.userId,
    createdAt: workspace.now(),
    uploadKey: randomBytes(24).toString("base64url"),
    viewKey: randomBytes(24).toString("base64url"),
    completedAt: undefined,
    shares: [],
  };
  workspace.files.set(file.id, file);
  return file;
}

/** Slack processes a file after its upload is completed; an image block that comes too early is refused. */
function isReady(workspace: Workspace, file: StoredFile): boolean {
  return (
    file.completedAt !== undefined &&
    workspace.now() - file.completedAt >= workspace.app.fileReadyMs
  );
}

/** Which files an image block may show: uploaded, processed, and a picture. */
export function picturesOf(workspace: Workspace): (fileId: string) => boolean {
  return (fileId) => {
    const file = workspace.files.get(fileId);
    const isImage = file && ["image/png", "image/jpeg", "image/gif"].includes(file.mimetype);
    return isImage === true && isReady(workspace, file);
  };
}

export function fileObject(workspace: Workspace, id: string): Fields {
  const file = workspace.files.get(id);
  if (!file) throw new Error(`There is no file ${id}`);
  const path = `${workspace.url}/files-pri/${workspace.team.id}-${file.id}`;
  const ready = isReady(workspace, file);
  const shared = { public: new Map<string, Fields[]>(), private: new Map<string, Fields[]>() };
  for (const share of file.shares) {
    const kind = workspace.channels.get(share.channelId)?.kind === "public" ? "public" : "private";
    const list = shared[kind].get(share.channelId) ?? [];
    shared[kind].set(share.channelId, [...list, { ts: share.ts }]);
  }
  const channelIds = (kind: string) =>
    file.shares.flatMap(({ channelId }) =>
      workspace.channels.get(channelId)?.kind === kind ? [channelId] : [],
    );
  return {
    id: file.id,
    created: Math.floor(file.createdAt / 1000),
    timestamp: Math.floor(file.createdAt / 1000),
    name: file.name,
    title: file.title,
    // Not known until the file has been processed.
    mimetype: ready ? file.mimetype : "",
    filetype: ready ? extension(file.name) : "",
    pretty_type: ready ? extension(file.name).toUpperCase() : "",
    user: file.userId,
    user_team: workspace.team.id,
    editable: false,
    size: file.size,
    mode: "hosted",
    is_external: false,
    external_type: "",
    is_public: file.shares.length > 0,
    public_url_shared: false,
    ...(file.altText ? { alt_txt: file.altText } : {}),
    url_private: `${path}/${encodeURIComponent(file.name)}`,
    url_private_download: `${path}/download/${encodeURIComponent(file.name)}`,
    permalink: `https://${workspace.team.domain}.slack.com/files/${file.userId}/${file.id}/`,
    channels: channelIds("public"),
    groups: channelIds("private"),
    ims: channelIds("direct"),
    shares: {
      ...(shared.public.size > 0 ? { public: Object.fromEntries(shared.public) } : {}),
      ...(shared.private.size > 0 ? { private: Object.fromEntries(shared.private) } : {}),
    },
  };
}

export function seenFile(workspace: Workspace, file: StoredFile): SeenFile {
  const name = encodeURIComponent(file.name);
  return {
    id: file.id,
    name: file.name,
    title: file.title,
    mimetype: file.mimetype,
    size: file.size,
    altText: file.altText,
    url: `${workspace.url}/files-pri/${workspace.team.id}-${file.id}/${name}?key=${file.viewKey}`,
  };
}
