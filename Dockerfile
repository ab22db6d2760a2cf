# Node 26 runs the TypeScript as it is, so there is nothing to build and no second stage. "slim" is Debian: glibc, for
# which the native parts of npm packages are built, and without compilers and package managers for other languages.
# By version and not by digest, because a digest that nobody here could look up would be invented: Renovate adds it where a
# registry can be asked. By hand: docker buildx imagetools inspect node:26.10.0-slim, and append @sha256:… here.
FROM node:26.10.0-slim

ENV NODE_ENV=production
WORKDIR /app

# Without install scripts: none of the production packages needs one, and none should run one here.
# A clone has package-lock.json; the tarball of a release has the same under the name that npm packs.
COPY package.json package-lock.json* npm-shrinkwrap.json* ./
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund && npm cache clean --force

# .dockerignore leaves tests and the sandbox out.
COPY src ./src
COPY LICENSE gatehouse.mjs ./

# Each process keeps a ledger of what it sent: give every gateway and worker a volume of its own here. The other folder is
# for what attestation.refresh fetches, if gatehouse.yml names it; processes may share it.
RUN install -d -m 700 -o node -g node /data /var/lib/gatehouse/endorsements
ENV DATA_DIR=/data
VOLUME /data

# By number: Kubernetes can't tell that a name is not root
USER 1000:1000
# Slack's, over HTTP. The probes' port is no part of the image's outside: OPS_PORT and OPS_HOST say where they are read.
EXPOSE 3000

HEALTHCHECK --interval=15s --timeout=5s --start-period=20s --retries=3 \
  CMD ["node", "-e", "const { OPS_PORT, OPS_HOST } = process.env; const isAll = !OPS_HOST || OPS_HOST === '::' || OPS_HOST === '0.0.0.0'; const host = isAll ? '127.0.0.1' : OPS_HOST; fetch(`http://${host.includes(':') ? `[${host}]` : host}:${OPS_PORT || 3001}/healthz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]

# What follows the image's name are Gatehouse's own words: "gateway", "worker", "propose …", or nothing, for both roles in one
# process. Node itself is process 1 and stops in order on SIGTERM. With a young generation that needs not grow first, fewer acks
# wait for a collection. The heap may have 60% of the container's memory limit: V8 collects before the kernel kills
# (docs/decisions/processes.md, 040 and 104).
ENTRYPOINT ["node", "--disable-sigusr1", "--min-semi-space-size=16", "--max-old-space-size-percentage=60", "gatehouse.mjs"]
