import { renderDigest } from "../../../src/features/digests/render-digest.ts";
import { type About, judgeOnLockedPhone } from "../../messages/locked-phone.ts";
import { knownVm } from "../../support/known-vm.ts";

const at = Date.parse("2026-11-20T03:12:00Z");

const digestOf = (about: About) =>
  renderDigest(
    {
      now: at,
      since: at - 3_600_000,
      vms: [knownVm(about.vm, "ERROR"), knownVm("web-1")],
      statusSince: new Map(),
      refreshedAt: at,
      stale: false,
      unreadProjects: [],
      open: [],
      unread: [],
      stuckAfterMs: 1,
    },
    { title: "Digest, Fri 20 Nov, 09:00", snoozed: new Set() },
  );

judgeOnLockedPhone([["a digest", "channel", digestOf, "Digest, Fri 20 Nov, 09:00: 1 VM in ERROR"]]);
