# The program and what it needs at run time, run by a user of its own. See docker-compose.yml and docs/deployment.md.
FROM python:3.13-slim AS packages
COPY requirements.lock /
# every file is checked against its digest in the lock; the next stage can install nothing else
RUN pip download --quiet --require-hashes --requirement /requirements.lock --dest /packages

FROM python:3.13-slim
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY ledger ledger
COPY producers producers
COPY consumers consumers
COPY sql sql
RUN --mount=type=bind,from=packages,source=/packages,target=/packages \
    pip install --quiet --no-cache-dir --no-index --find-links /packages . && rm -rf /src
RUN useradd --system --create-home --home-dir /home/apply-ledger apply-ledger
USER apply-ledger
WORKDIR /home/apply-ledger
ENV PYTHONUNBUFFERED=1
ENTRYPOINT ["apply-ledger"]
CMD ["--help"]
