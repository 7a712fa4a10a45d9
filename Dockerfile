# docker build -t stirred . && docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/work" stirred demo
# By its full version, not by digest: the digest could not be learned where this was written, and none is invented.
# docker buildx imagetools inspect python:3.12.11-slim-bookworm shows it; then write …-bookworm@sha256:…
FROM python:3.12.11-slim-bookworm
WORKDIR /opt/stirred
COPY tools/demo.txt tools/demo.txt
RUN python -m pip install --no-cache-dir --require-hashes -r tools/demo.txt
COPY pyproject.toml README.md LICENSE ./
COPY src src
# The demo compiles the kernels once, for the processor of this machine; on another one they are compiled when they are used.
# They are kept only where whoever runs them may write, and the container runs as whoever starts it.
ENV NUMBA_CACHE_DIR=/opt/stirred/kernels
RUN python -m pip install --no-cache-dir --no-deps --no-build-isolation . \
 && stirred demo --out /tmp/demo && rm -rf /tmp/demo \
 && useradd --create-home stirred && chmod -R a+rwX /opt/stirred/kernels && mkdir -m 777 /work
USER stirred
WORKDIR /work
ENTRYPOINT ["stirred"]
CMD ["--help"]
