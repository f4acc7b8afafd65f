# A small image with the command `armid`, made from the wheel:
#   make wheel && docker build -t armid . && docker run --rm -v "$PWD:/work" armid inspect arm.urdf
FROM python:3.11-slim
COPY dist/armid-*.whl /tmp/
# All extras that run without a screen; `pip install armid` alone is enough to identify.
RUN wheel=$(ls /tmp/armid-*.whl) \
 && pip install --no-cache-dir "${wheel}[sim,symbolic,report,io,ros,plan,frames]" \
 && rm /tmp/armid-*.whl \
 && useradd --create-home arm
USER arm
# Compiled kernels are kept here; mount a volume to keep them between runs.
ENV ARMID_CACHE=/home/arm/.cache/armid
WORKDIR /work
ENTRYPOINT ["armid"]
CMD ["--help"]
