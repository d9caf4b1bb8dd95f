# Runs inside of a container of a user's choice: what the image lacks is said by the exit code, which the portal reads.
for program in python3 jupyterhub-singleuser jupyter-lab; do
    if ! command -v "$program" >/dev/null 2>&1; then
        echo "This image has no $program on its PATH; the portal needs python3, jupyterhub-singleuser and jupyter-lab." >&2
        exit 78
    fi
done
exec python3 -I "$1" "$2" in-image
