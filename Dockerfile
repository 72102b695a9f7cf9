# An image of the proxy alone. Build: docker build -t toolgraft .
# Run, with a model server on the host:
#   docker run -p 8787:8787 --add-host host.docker.internal:host-gateway toolgraft --backend http://host.docker.internal:8080
FROM debian:bookworm-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends python3 python3-venv && rm -rf /var/lib/apt/lists/*
RUN python3 -m venv /opt/toolgraft
COPY pyproject.toml README.md LICENSE /src/
COPY proxy /src/proxy
RUN /opt/toolgraft/bin/pip install --no-cache-dir /src

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends python3 ca-certificates \
    && rm -rf /var/lib/apt/lists/* && useradd --system --no-create-home toolgraft
COPY --from=build /opt/toolgraft /opt/toolgraft
USER toolgraft
EXPOSE 8787
HEALTHCHECK --interval=30s --timeout=3s CMD ["/opt/toolgraft/bin/python", "-c", \
    "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8787/health', timeout=2)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["/opt/toolgraft/bin/toolgraft", "serve", "--host", "0.0.0.0"]
