# deixis serve on a CPU. Not built where it was written (docs/anywhere.md); tests/test_dockerfile.py reads it.
#   docker build -t deixis . && docker run --rm -p 8008:8008 -e DEIXIS_TOKEN=a-secret deixis   (other machines need a token)
FROM python:3.11-slim

ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /app
COPY constraints.txt ./
RUN pip install --index-url https://download.pytorch.org/whl/cpu --extra-index-url https://pypi.org/simple \
    -c constraints.txt torch==2.13.0
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN pip install -c constraints.txt . && useradd --create-home deixis
USER deixis
WORKDIR /home/deixis
EXPOSE 8008
CMD ["deixis", "serve", "--host", "0.0.0.0", "--port", "8008"]
