# The proxy alone:             docker build -t toolgraft .
# With the embedded model:     docker build -t toolgraft:local --target local .
# In front of a model server on the host:
#   docker run -p 8787:8787 --add-host host.docker.internal:host-gateway \
#     -e TOOLGRAFT_BACKEND_URL=http://host.docker.internal:8080 toolgraft
# A file of settings is mounted as /etc/toolgraft/toolgraft.toml.

FROM debian:bookworm-slim AS base
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates python3 \
    && rm -rf /var/lib/apt/lists/*

FROM base AS build
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3-pip python3-venv \
    && rm -rf /var/lib/apt/lists/*
RUN python3 -m venv --without-pip /opt/toolgraft
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY proxy proxy
RUN python3 -m pip --python /opt/toolgraft install --no-cache-dir .

FROM build AS build-local
RUN python3 -m pip --python /opt/toolgraft install --no-cache-dir '.[local]'
ENV TOOLGRAFT_CACHE=/opt/toolgraft/models
RUN /opt/toolgraft/bin/python -c 'from proxy.weights import ensure_model; ensure_model(print)'

FROM base AS run
RUN useradd --system --uid 10001 --no-create-home toolgraft
WORKDIR /etc/toolgraft
USER 10001:10001
ENV PATH=/opt/toolgraft/bin:$PATH TOOLGRAFT_HOST=0.0.0.0
EXPOSE 8787
HEALTHCHECK --interval=30s --timeout=3s CMD ["python", "-c", \
    "import http.client as h; c = h.HTTPConnection('127.0.0.1', 8787, timeout=2); c.request('GET', '/health'); raise SystemExit(c.getresponse().status != 200)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["toolgraft"]
CMD ["serve"]

FROM run AS local
USER 0
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends libgomp1 \
    && rm -rf /var/lib/apt/lists/*
USER 10001:10001
COPY --from=build-local /opt/toolgraft /opt/toolgraft
ENV TOOLGRAFT_CACHE=/opt/toolgraft/models
CMD ["serve", "--local"]

FROM run AS proxy
COPY --from=build /opt/toolgraft /opt/toolgraft
