# docker build -t stirred . && docker run --rm -v "$PWD:/work" stirred demo
FROM python:3.12-slim
WORKDIR /opt/stirred
COPY tools/demo.txt tools/demo.txt
RUN python -m pip install --no-cache-dir --require-hashes -r tools/demo.txt
COPY pyproject.toml README.md LICENSE ./
COPY src src
# The demo compiles the kernels once, for the processor of this machine; on another one they are compiled when they are used.
RUN python -m pip install --no-cache-dir --no-deps --no-build-isolation . \
 && stirred demo --out /tmp/demo && rm -rf /tmp/demo \
 && useradd --create-home stirred
USER stirred
WORKDIR /work
ENTRYPOINT ["stirred"]
CMD ["--help"]
